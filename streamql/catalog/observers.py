"""Observers: features that are told which work begins, and what the catalog has recorded. They delay and fail nothing."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.delta.jvm import sentence
from streamql.registered import registered

log = logging.getLogger("streamql")

Event = Mapping[str, Any]
"""A row of the table of events, by its columns. `ended_at` and `outcome` are None while the work is under way."""

NUMBER = "number"
"""A key of rows that are not written: as `work_id` takes it."""

_AROUND = "streamql.work"
"""The local property of Spark that names the work within which a statement runs. The threads that a statement starts inherit it."""


@dataclass(frozen=True)
class Around:
    """The work within which a statement runs. `id`: a UUID. `kind`: such as TASK. `name`: of the task."""

    id: str
    kind: str
    name: str


@dataclass(frozen=True)
class Seen:
    """What observers are told at once.

    `events`: the rows, of which those of one statement have one row for each stream. `streams`: the streams of the rows, by id. `lineages`:
    JSON of the Scala class `Lineage`, by the number of the row; it is known only if the work begins in this process. `around`: the work
    within which this happens; None: there is none.
    """

    events: Sequence[Event]
    streams: Mapping[str, StreamState]
    lineages: Mapping[int, str]
    around: Around | None


@dataclass(frozen=True)
class Observer:
    """What is told of work. `is_on`: whether it wants to be told, which is asked each time. `began` and `recorded` are called in the thread
    of the statement, so they only take a note. `close`: is called before the process ends."""

    is_on: Callable[[], bool]
    began: Callable[[SparkSession, Seen], None]
    recorded: Callable[[SparkSession, Seen], None]
    close: Callable[[], None]


def work_id(event: Event, number: int = 0) -> str:
    """Returns a UUID that the rows of one piece of work share, when it begins and when it ends, in all processes. `number`: 0, and one more
    for each earlier statement of the consumption with the same text and target."""
    details = json.loads(event.get("details") or "{}")
    attempts = [details.get("graph_attempt"), details.get("attempt")] if event["operation"] == "TASK" else [number]
    what = event["source_id"] if event["operation"] == "TASK" else event["target_path"] or event["target"]
    said = json.dumps([what, event["operation"], event["statement"], *attempts])
    return str(uuid.uuid5(uuid.UUID(event["consumption_id"]), said))


def observers() -> list[Observer]:
    """Returns the observers that want to be told."""
    return [o for of_feature in registered("observers") for o in of_feature() if o.is_on()]


def tell_began(
    spark: SparkSession, make: Callable[[], tuple[Sequence[Event], Sequence[StreamState], Mapping[int, str]]]
) -> None:
    """Tells observers that work begins. `make`: makes the rows, the streams and the lineages of `Seen`; it is called only if an observer
    wants them. What goes wrong is a warning."""
    told = observers()
    if told:
        _tell([o.began for o in told], lambda: _seen(spark, *make()), spark)


def tell_recorded(spark: SparkSession, events: Sequence[Event], states: Sequence[object]) -> None:
    """Tells observers what was written into the table of events. `states`: the entries that the commit wrote. What goes wrong is a
    warning."""
    told = observers() if events else []
    if told:
        streams = [s for s in states if isinstance(s, StreamState)]
        _tell([o.recorded for o in told], lambda: _seen(spark, events, streams, {}), spark)


def close_observers() -> None:
    """Lets observers finish, before the process ends."""
    for observer in observers():
        observer.close()


def _tell(calls: Sequence[Callable[[SparkSession, Seen], None]], make: Callable[[], Seen], spark: SparkSession) -> None:
    try:
        seen = make()
        for call in calls:
            call(spark, seen)
    except Exception as e:
        log.warning("an observer of statements failed: %s", sentence(e))


def _seen(
    spark: SparkSession, events: Sequence[Event], states: Sequence[StreamState], lineages: Mapping[int, str]
) -> Seen:
    return Seen(events, {s.stream.uuid: s for s in states}, lineages, _around(spark))


@contextmanager
def within(spark: SparkSession, around: Around) -> Iterator[None]:
    """Lets the statements that this thread runs know the work around them."""
    context = spark.sparkContext
    before = context.getLocalProperty(_AROUND)
    context.setLocalProperty(_AROUND, json.dumps([around.id, around.kind, around.name]))
    try:
        yield
    finally:
        context.setLocalProperty(_AROUND, before)  # type: ignore[arg-type]  # None removes it


def _around(spark: SparkSession) -> Around | None:
    said = spark.sparkContext.getLocalProperty(_AROUND)
    return None if said is None else Around(*json.loads(said))
