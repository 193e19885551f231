"""What expectations do to streams: how statements change them, how reads are screened, and what consumptions write besides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.changes import HIDDEN_COLUMNS
from streamql.delta.jvm import frame, java_frame, scala, sentence
from streamql.delta.names import qualify
from streamql.dialect import parse
from streamql.dialect.statements import CreateStream
from streamql.errors import ERROR_CLASSES, StreamqlError
from streamql.features.expectations import quarantine
from streamql.features.expectations.expectation import TERMS, Expectation, from_text, tables_of, to_text
from streamql.features.expectations.language.clause import (
    EXPECTATIONS_MAX,
    QUARANTINE,
    AddExpectation,
    DropExpectation,
)
from streamql.misspelt import suggestion
from streamql.model import Stream
from streamql.names import Name
from streamql.terms import Completion, TermType

_ZONE = "spark.sql.session.timeZone"


def expectations_of(stream: Stream) -> tuple[Expectation, ...]:
    """Returns the expectations of a stream, in the order in which they were added."""
    return from_text(stream.terms[TERMS]) if TERMS in stream.terms else ()


# -- statements


def add(spark: SparkSession, state: StreamState, action: AddExpectation, is_created: bool) -> Stream:
    """Returns the stream with one more expectation. Creates its quarantine table. Raises EXPECTATION_EXISTS, INVALID_EXPECTATION."""
    stream, known = state.stream, expectations_of(state.stream)
    if any(e.key == action.name.lower() for e in known):
        raise StreamqlError(
            "EXPECTATION_EXISTS",
            f"stream {stream.name} has an expectation {action.name}",
            hint=f"ALTER STREAM {stream.name} DROP EXPECTATION {action.name}, and ADD it again",
        )
    if len(known) == EXPECTATIONS_MAX:
        raise StreamqlError(
            "INVALID_EXPECTATION",
            f"stream {stream.name} has {EXPECTATIONS_MAX} expectations, which is the most",
            hint="join conditions by AND",
        )
    table = _table(spark, stream.name, action) if action.action == QUARANTINE else None
    made = Expectation(action.name, action.condition, action.action, str(spark.conf.get(_ZONE)), table)
    changes = quarantine.changes_of(spark, state)
    try:
        scala(spark).expectations.Screens.check(java_frame(changes), to_text([made]))
    except AnalysisException as e:
        raise _unusable(stream.name, made.name, e, f"name columns that DESCRIBE {stream.name} shows") from e
    if table is not None:
        quarantine.ready(spark, state, table, quarantine.shown_columns(changes))
    definition = stream.definition if is_created else f"{stream.definition}\n{made.clause}"
    return replace(stream, terms={**stream.terms, TERMS: to_text([*known, made])}, definition=definition)


def _table(spark: SparkSession, stream: Name, action: AddExpectation) -> Name:
    if action.into is not None:
        return qualify(spark, action.into)
    return Name(stream.catalog, stream.schema, f"{stream.object}_quarantine")


def _unusable(stream: Name, name: str, e: AnalysisException, hint: str) -> Exception:
    """Returns the error for a condition that Spark cannot analyse over the columns of the stream; `e` itself if it is ours."""
    if e.getCondition() in ERROR_CLASSES:
        return e
    said = sentence(e).partition(" SQLSTATE")[0]
    return StreamqlError(
        "INVALID_EXPECTATION",
        f"expectation {name} of stream {stream} cannot be evaluated: {said}",
        hint=hint,
    )


def drop(_: SparkSession, state: StreamState, action: DropExpectation, __: bool) -> Stream:
    """Returns the stream without an expectation. Its quarantine table stays. Raises EXPECTATION_NOT_FOUND."""
    stream, known = state.stream, expectations_of(state.stream)
    left = [e for e in known if e.key != action.name.lower()]
    if len(left) == len(known):
        if action.if_exists:
            return stream
        raise StreamqlError(
            "EXPECTATION_NOT_FOUND",
            f"stream {stream.name} has no expectation {action.name}",
            hint=suggestion(action.name, [e.name for e in known]) or f"DESCRIBE STREAM {stream.name} shows them",
        )
    terms = {name: text for name, text in stream.terms.items() if name != TERMS}
    if left:
        terms[TERMS] = to_text(left)
    return replace(stream, terms=terms, definition=_without(stream.definition, action.name))


def _without(definition: str, name: str) -> str:
    """Returns the text of CREATE STREAM without the clause of an expectation."""
    created = parse(definition)
    for clause in created.clauses if isinstance(created, CreateStream) else ():
        if isinstance(clause, AddExpectation) and clause.name.lower() == name.lower():
            return f"{definition[: clause.start]}{definition[clause.end :].lstrip()}".rstrip()
    return definition


def shown(text: str) -> list[tuple[str, str]]:
    """Returns the rows that DESCRIBE STREAM has for expectations."""
    return [(f"expectation {e.name}", e.shown) for e in from_text(text)]


# -- reads and consumptions


def read(state: StreamState, text: str, changes: DataFrame) -> DataFrame:
    """Returns the rows of a change set that the stream shows. Lazy. Raises INVALID_EXPECTATION if a condition no longer fits the
    columns."""
    screens = scala(changes.sparkSession).expectations.Screens
    try:
        made = screens.screened(java_frame(changes), text, str(state.name), len(HIDDEN_COLUMNS))
    except AnalysisException as e:
        names = ", ".join(e.name for e in from_text(text))
        drop_them = f"ALTER STREAM {state.name} DROP EXPECTATION, and ADD it with columns that the source has"
        raise _unusable(state.name, names, e, drop_them) from e
    return frame(changes.sparkSession, made)


def prepare(spark: SparkSession, state: StreamState, text: str) -> Mapping[str, Any]:
    """Makes the quarantine tables ready before a statement claims the stream. Returns their ids and versions, by the keys of their
    names."""
    tables = tables_of(from_text(text))
    if not tables:
        return {}
    changes = quarantine.shown_columns(quarantine.changes_of(spark, state))
    found = {name.key: quarantine.ready(spark, state, name, changes) for name in tables}
    return {key: {"table_id": q.table_id, "version": q.version} for key, q in found.items()}


def complete(c: Completion) -> Mapping[str, Any]:
    """Writes the rows of a consumption that violate an expectation into its quarantine table, once. Returns what the ledger shows: the rows
    that violate each expectation, and what went into quarantine tables.

    Which rows these are follows from the interval and the expectations, so that any process can write them.
    """
    expectations = from_text(c.text)
    found = None if c.found is None else json.loads(c.found)
    counts: Mapping[str, int] | None = None if found is None else found["rows"]
    kept = None if found is None else found.get("bad")
    written: dict[str, Mapping[str, int | None]] = {}
    for table, names in tables_of(expectations).items():
        if counts is None or any(counts.get(name) for name in names):
            done = quarantine.write(c, expectations, table, names, kept)
            counts = counts if counts is not None else done.violations
            if done.rows:
                written[str(table)] = {"rows": done.rows, "version": done.version}
    noted: dict[str, Any] = {"violations": dict(counts)} if counts else {}
    return {**noted, **({"quarantined": written} if written else {})}


def is_complete(c: Completion) -> bool:
    """Returns whether a quarantine table has rows of a consumption. If none has, none gets them later. Tables are asked in the order in
    which `complete` writes them."""
    return any(quarantine.is_written(c, table) for table in tables_of(from_text(c.text)))


def abandon(c: Completion) -> list[str]:
    """Keeps a consumption from writing into quarantine tables later. Returns the tables that have its rows."""
    return [f"rows into {t}" for t in tables_of(from_text(c.text)) if quarantine.is_written(c, t)]


def _actions() -> Mapping[type, Any]:
    return {AddExpectation: add, DropExpectation: drop}


def term_types() -> Sequence[TermType]:
    """Returns the terms that the feature registers."""
    return (TermType(TERMS, _actions(), shown, read, prepare, complete, is_complete, abandon),)
