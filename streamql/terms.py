"""Terms of streams: what a feature keeps with a stream, and does when the stream is read and consumed.

A stream has a text for each type of its terms (`Stream.terms`). Statements change it, and no consumption is under way then. So the terms of
a claimed stream are those that its statements were read with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import Claim, Joined, StreamState
from streamql.model import Stream
from streamql.registered import registered


@dataclass(frozen=True)
class Completion:
    """A consumption whose statements are done, and whose streams have not moved yet. `state`: a stream that will move. `text`: its terms.
    `joined`: what was noted when it entered the claim. `found`: what the checks of its rows have found, as JSON; None: this process has not
    read all of its rows."""

    spark: SparkSession
    claim: Claim
    state: StreamState
    text: str
    joined: Joined
    found: str | None


@dataclass(frozen=True)
class TermType:
    """A type of terms.

    `actions`: by the type of an action of ALTER STREAM or a clause of CREATE STREAM, what it makes of a stream. The last argument says
    whether the stream is created, so that its definition has the clause. `shown`: the rows that DESCRIBE STREAM has for the terms.

    `read`: the rows that the stream shows, of its change set, in the same columns. `prepare`: called before a statement claims the stream.
    What it returns is JSON, and stays in the claim. What it raises fails the statement. `complete`: called when the statements are done. It
    writes what belongs to the consumption besides, and returns what the ledger shows of it. It may be called again, by any process, and
    must then change nothing. If it raises, the claim stays until another call succeeds. `fence`: returns whether `complete` has written
    anything. If it has not, it can no longer do so. It is called for a query that consumed by reading, and whose process is dead.
    `abandon`: what `complete` has not written can no longer be written. Returns what has been written, for display. It is called before a
    user's statement gives the consumption up.
    """

    name: str
    actions: Mapping[type, Callable[[SparkSession, StreamState, Any, bool], Stream]]
    shown: Callable[[str], Sequence[tuple[str, str]]]
    read: Callable[[StreamState, str, DataFrame], DataFrame]
    prepare: Callable[[SparkSession, StreamState, str], Mapping[str, Any]]
    complete: Callable[[Completion], Mapping[str, Any]]
    fence: Callable[[Completion], bool]
    abandon: Callable[[Completion], Sequence[str]]


def term_types() -> Iterator[TermType]:
    """Yield the types of terms that features have registered."""
    return (type_ for types in registered("terms") for type_ in types())


def terms_of(stream: Stream) -> list[tuple[TermType, str]]:
    """Returns the terms of a stream: their types with their texts. Terms of an unknown type are left out."""
    return [(t, stream.terms[t.name]) for t in term_types() if t.name in stream.terms] if stream.terms else []


def shown_rows(state: StreamState, changes: DataFrame) -> DataFrame:
    """Returns the rows of a change set that a stream shows, by its terms. Lazy. Raises what `TermType.read` raises."""
    for type_, text in terms_of(state.stream):
        changes = type_.read(state, text, changes)
    return changes


def altered(spark: SparkSession, state: StreamState, action: object, *, is_created: bool = False) -> Stream:
    """Returns the stream as an action of a feature leaves it. Raises what the action raises."""
    change = next(t.actions[type(action)] for t in term_types() if type(action) in t.actions)
    return change(spark, state, action, is_created)
