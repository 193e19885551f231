"""What consumptions did, for a front end that asks: which streams moved, and how many rows went where.

A front end that does not ask pays nothing, so `spark.sql()` stays silent and as quick as before.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession

from streamql.catalog.events import rows_written
from streamql.catalog.states import Claim, ClaimedStatement
from streamql.catalog.store import catalog_of
from streamql.consume.binding import tokens_of
from streamql.consume.claims.outcomes import moves
from streamql.delta.command import Command
from streamql.model import Position
from streamql.settings import EFFECTS, WANTS_EFFECTS

log = logging.getLogger("streamql")


@dataclass(frozen=True)
class Move:
    """A stream's offset before and after a consumption: versions, or the text of a position of several parts. Equal ones: there was nothing
    to take.

    `initial`: the rows that the source had at `after` were taken as well."""

    stream: str
    after: int | str
    through: int | str
    initial: bool = False


def shown(position: Position) -> int | str:
    """Returns a position as a front end shows it."""
    return position if isinstance(position, int) else str(position)


@dataclass(frozen=True)
class Write:
    """What one statement wrote. `rows`: by the metrics of the target's commit; None: the target does not count them."""

    operation: str
    target: str
    rows: int | None


@dataclass(frozen=True)
class Effect:
    """What one statement did. `is_open`: it stands in a transaction, so the streams move at COMMIT. `is_skipped`: an earlier run of the
    transaction did it."""

    moves: tuple[Move, ...] = ()
    writes: tuple[Write, ...] = ()
    is_open: bool = False
    is_skipped: bool = False


_asked: ContextVar[tuple[list[Effect], ...]] = ContextVar("_asked", default=())


@contextmanager
def observed() -> Iterator[list[Effect]]:
    """Collects the effects of all consumptions that this thread runs inside."""
    effects: list[Effect] = []
    before = _asked.set((*_asked.get(), effects))
    try:
        yield effects
    finally:
        _asked.reset(before)


def report(spark: SparkSession, claim: Claim, statements: Sequence[ClaimedStatement], *, is_open: bool = False) -> None:
    """Reports what statements of a claim did. `is_open`: of a transaction, before its COMMIT; COMMIT has no statements of its own."""
    if not _asked.get():
        return
    if is_open:
        moved = [uuid for uuid in claim.intervals if any(claim.reads(s, uuid) for s in statements)]
    else:
        moved = [uuid for uuid in claim.intervals if moves(claim, uuid)]
    try:
        states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in moved]
    except Exception as e:  # the statement has committed: a catalog that cannot be read must not make it a failure
        log.warning("the streams that the statement moved cannot be shown: %s", e)
        states = []
    found = tuple(
        Move(str(s.name), shown(i.after), shown(i.through), i.initial)
        for s, i in ((s, claim.intervals[s.stream.uuid]) for s in states if s is not None)
    )
    writes = [Write(s.operation, s.target, rows_written(s.metrics)) for s in statements if s.outcome == "done"]
    _report(Effect(found, tuple(writes), is_open))


def report_nothing(command: Command) -> None:
    """Reports that a statement's streams had nothing to take, so that they stay where they are."""
    if _asked.get():
        last = {t.stream: shown(t.interval.through) for t in tokens_of(command)}
        _report(Effect(tuple(Move(name, position, position) for name, position in last.items())))


def report_skipped() -> None:
    """Reports that a statement of a transaction was not run, since an earlier run of the transaction did it."""
    _report(Effect(is_open=True, is_skipped=True))


def _report(effect: Effect) -> None:
    for effects in _asked.get():
        effects.append(effect)


# -- for a client of a server, by two settings of its session: a setting is all that Spark Connect reads without a job


@contextmanager
def reported_to_client(spark: SparkSession) -> Iterator[None]:
    """Leaves the effects of what runs inside in the session's settings, if its client has asked for them."""
    if not spark.conf.get(WANTS_EFFECTS, ""):
        yield
        return
    with observed() as effects:
        yield
    if effects:
        earlier = from_json(spark.conf.get(EFFECTS, "") or "")
        spark.conf.set(EFFECTS, to_json([*earlier, *effects]))


def to_json(effects: Sequence[Effect]) -> str:
    """Effects as a client reads them."""
    return json.dumps([asdict(e) for e in effects])


def from_json(text: str) -> list[Effect]:
    """Returns what `to_json` wrote; nothing for an empty text."""
    return [
        Effect(**{**e, "moves": tuple(Move(**m) for m in e["moves"]), "writes": tuple(Write(**w) for w in e["writes"])})
        for e in (json.loads(text) if text else [])
    ]
