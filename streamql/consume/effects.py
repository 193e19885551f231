"""The effects of consumptions, for a front end that asks: which streams moved, and how many rows were written into which table.

Nothing is collected for a front end that does not ask, such as `spark.sql()`.
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
from streamql.consume.binding import reads_of
from streamql.consume.claims.outcomes import moves
from streamql.delta.command import Command
from streamql.model import Position
from streamql.settings import EFFECTS, WANTS_EFFECTS

log = logging.getLogger("streamql")


@dataclass(frozen=True)
class Move:
    """A stream's offset before (`after`) and after (`through`) a consumption: a version, or JSON for a source of several parts. The two are
    equal if there was nothing to consume. `initial`: the rows that the source had at `after` were consumed as well."""

    stream: str
    after: int | str
    through: int | str
    initial: bool = False


def shown(position: Position) -> int | str:
    """Returns a position as a front end shows it."""
    return position if isinstance(position, int) else str(position)


@dataclass(frozen=True)
class Write:
    """What one statement wrote. `rows`: as the metrics of the target's commit count them; None: there are no such metrics."""

    operation: str
    target: str
    rows: int | None


@dataclass(frozen=True)
class Effect:
    """What one statement did. `is_open`: it is part of a transaction, so its streams move at COMMIT. `is_skipped`: it was skipped, because
    an earlier run of the transaction has done it."""

    moves: tuple[Move, ...] = ()
    writes: tuple[Write, ...] = ()
    is_open: bool = False
    is_skipped: bool = False


_asked: ContextVar[tuple[list[Effect], ...]] = ContextVar("_asked", default=())


@contextmanager
def observed() -> Iterator[list[Effect]]:
    """Collects the effects of all consumptions that this thread runs in the body."""
    effects: list[Effect] = []
    before = _asked.set((*_asked.get(), effects))
    try:
        yield effects
    finally:
        _asked.reset(before)


def report(spark: SparkSession, claim: Claim, statements: Sequence[ClaimedStatement], *, is_open: bool = False) -> None:
    """Reports what `statements` of a claim did. `is_open`: they belong to a transaction, before its COMMIT. COMMIT itself reports with no
    statements."""
    if not _asked.get():
        return
    if is_open:
        moved = [uuid for uuid in claim.intervals if any(claim.reads(s, uuid) for s in statements)]
    else:
        moved = [uuid for uuid in claim.intervals if moves(claim, uuid)]
    try:
        states = [catalog_of(spark).by_uuid(spark, uuid) for uuid in moved]
    except (
        Exception
    ) as e:  # the statement has committed: it must not fail because the catalog cannot be read for this report
        log.warning("the streams that the statement moved cannot be shown: %s", e)
        states = []
    found = tuple(
        Move(str(s.name), shown(i.after), shown(i.through), i.initial)
        for s, i in ((s, claim.intervals[s.stream.uuid]) for s in states if s is not None)
    )
    writes = [Write(s.operation, s.target, rows_written(s.metrics)) for s in statements if s.outcome == "done"]
    _report(Effect(found, tuple(writes), is_open))


def report_nothing(command: Command) -> None:
    """Reports that a statement's streams had nothing to consume, so that their offsets stay."""
    if _asked.get():
        last = {read.stream: shown(read.interval.through) for read in reads_of(command)}
        _report(Effect(tuple(Move(name, position, position) for name, position in last.items())))


def report_skipped() -> None:
    """Reports that a statement of a transaction was skipped, because an earlier run of the transaction has done it."""
    _report(Effect(is_open=True, is_skipped=True))


def _report(effect: Effect) -> None:
    for effects in _asked.get():
        effects.append(effect)


# -- for clients of a server: through two settings of the session, because Spark Connect reads nothing else without a job


@contextmanager
def reported_to_client(spark: SparkSession) -> Iterator[None]:
    """Writes the effects of the body into a setting of the session, if the session's client has asked for them."""
    if not spark.conf.get(WANTS_EFFECTS, ""):
        yield
        return
    with observed() as effects:
        yield
    if effects:
        earlier = from_json(spark.conf.get(EFFECTS, "") or "")
        spark.conf.set(EFFECTS, to_json([*earlier, *effects]))


def to_json(effects: Sequence[Effect]) -> str:
    """Returns effects as JSON, which `from_json` reads."""
    return json.dumps([asdict(e) for e in effects])


def from_json(text: str) -> list[Effect]:
    """Returns the effects that `to_json` wrote; none for an empty text."""
    return [
        Effect(**{**e, "moves": tuple(Move(**m) for m in e["moves"]), "writes": tuple(Write(**w) for w in e["writes"])})
        for e in (json.loads(text) if text else [])
    ]
