"""Facts as they could be, made up: for what is pure, and to be looked at by eye (`python -m tests.look.samples FILE.html STREAMS`)."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

from streamql.catalog.counts import Consumption
from streamql.cli.html.model import PARTS, Report, Window
from streamql.cli.html.page import render
from streamql.cli.status.overview import Overview
from streamql.engine.ledger import Bucket, Flow
from streamql.engine.stream_facts import Consumer, StreamFacts, StreamStatus
from streamql.features.dynamic.refreshes.facts import DynamicFacts
from streamql.features.dynamic.refreshes.status import Refresh
from streamql.features.dynamic.source.table import Schedule
from streamql.features.tasks.model.schedule import Schedule as Minutes
from streamql.features.tasks.model.task import Task
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType
from streamql.sources.protocol import NO_BACKLOG, Backlog

NOW = 1_790_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
HOSTILE = "sales.`</title><script>alert('x')</script>\"&\u202e`"


def lagging(versions: int, rows: int, stale_in_ms: int, *, soon: bool = False) -> StreamStatus:
    """The status of a stream with something to consume."""
    waiting = Backlog(versions, rows, rows // 3, versions, rows * 41, True)
    return StreamStatus(NOW - HOUR, versions, versions * 90, True, False, NOW + stale_in_ms, None, None, waiting, soon)


CURRENT = StreamStatus(NOW, 0, 0, False, backlog=NO_BACKLOG)
HALF = replace(
    lagging(5, 90, 3 * DAY),
    invalid_reason="CONSUMPTION_PARTIALLY_COMMITTED: a transaction stopped half way",
    is_blocked=True,
)
STALE = StreamStatus(NOW - 40 * DAY, 812, None, None, True, None, "STREAM_STALE: version 4 of sales.orders is gone")
MISSING = StreamStatus(
    invalid_reason="STREAM_SOURCE_MISSING: sales.gone, the source of the stream, does not exist any more"
)


def consumed(ago_ms: int = HOUR, outcome: str = "CONSUMED", error: str | None = None, *targets: str) -> Consumption:
    """A consumption that ended some time ago."""
    return Consumption(NOW - ago_ms - 4000, NOW - ago_ms, outcome, targets or ("sales.daily",), 120, error)


def stream(name: str, status: StreamStatus = CURRENT, **more: object) -> StreamFacts:
    """A stream."""
    facts = {"uuid": name, "source": "sales.orders", "mode": "STANDARD", "offset_version": 7} | more
    return StreamFacts(name=name, status=status, **facts)  # type: ignore[arg-type]  # each has the type of its field


SAMPLES = (
    stream("sales.orders_st", lagging(3, 1250, 6 * DAY), last=consumed()),
    stream("sales.refunds_st", lagging(41, 3_400_000, 5 * HOUR, soon=True), last=consumed(30 * HOUR)),
    stream(
        "sales.customers_scd2", CURRENT, last=consumed(5 * 60_000, "CONSUMED", None, "dwh.customers", "dwh.history")
    ),
    stream("sales.old_st", STALE, last=consumed(41 * DAY)),
    stream(HOSTILE, MISSING, source="sales.gone"),
    stream(
        "sales.failing_st",
        lagging(9, 800, 4 * DAY),
        last=consumed(HOUR, "FAILED", "[USER_RAISED_EXCEPTION] <script>alert(1)</script> & more"),
        failure=consumed(HOUR, "FAILED", "[USER_RAISED_EXCEPTION] <script>alert(1)</script> & more"),
    ),
    stream("sales.busy_st", lagging(2, 10, 6 * DAY), consumer=Consumer("etl@node7", 4711, NOW - 9000, False, None)),
    stream("sales.half_st", HALF, consumer=Consumer("etl@node7", 12, NOW - HOUR, True, None)),
    stream("sales.never_st", lagging(2, 30, 2 * DAY), mode="APPEND_ONLY"),
)


def dynamic(name: str, lag_ms: int = 0, **more: object) -> DynamicFacts:
    """A dynamic table with a target of ten minutes."""
    facts: dict[str, object] = {
        "uuid": name,
        "label": "DYNAMIC TABLE",
        "schedule": Schedule(lag_ms=600_000),
        "is_suspended": False,
        "is_filled": True,
        "is_refreshing": False,
        "target_ms": 600_000,
        "due_ms": NOW + 540_000 - lag_ms,
    }
    return DynamicFacts(name=name, lag_ms=lag_ms, **(facts | more))  # type: ignore[arg-type]  # each has the type of its field


def refreshed(ago_ms: int = 300_000, outcome: str = "REFRESHED", error: str | None = None) -> Refresh:
    """A refresh that ended some time ago."""
    rows = None if error else {"inserted": 12, "updated": 3, "deleted": 1}
    return Refresh("t", outcome, "FULL", "CHANGED", NOW - ago_ms - 2500, NOW - ago_ms, rows, None, 7, error)


HOURLY = Schedule(interval_ms=HOUR, start_ms=NOW - DAY)
MANUAL: dict[str, object] = {"schedule": Schedule(), "target_ms": None, "due_ms": None}
DYNAMIC = (
    dynamic("dwh.clean_orders", 240_000, last=refreshed(), sources=("sales.orders", HOSTILE)),
    dynamic(
        "dwh.customers", 0, last=refreshed(HOUR), sources=("sales.customers",), schedule=Schedule(is_downstream=True)
    ),
    dynamic(
        "dwh.daily",
        1_500_000,
        last=refreshed(DAY),
        reads=("dwh.clean_orders", "dwh.customers"),
        due_ms=NOW - 900_000,
    ),
    dynamic(
        "dwh.failing",
        7_200_000,
        last=refreshed(60_000, "FAILED", "[DIVIDE_BY_ZERO] <b>Division</b> by zero"),
        failures=3,
        reads=("dwh.daily",),
        sources=("sales.orders",),
    ),
    dynamic("dwh.hourly", 60_000, schedule=HOURLY, target_ms=HOUR, is_refreshing=True, sources=("sales.orders",)),
    dynamic("dwh.never", 60_000, is_filled=False, due_ms=NOW - 1, reads=("dwh.customers",)),
    dynamic("dwh.off", DAY, is_suspended=True, due_ms=None, reads=("dwh.daily",), last=refreshed(DAY)),
    dynamic("dwh.off_reader", DAY, held_by="dwh.off", due_ms=None, reads=("dwh.off",), label="MATERIALIZED VIEW"),
    dynamic("dwh.manual", 0, last=refreshed(DAY), sources=("sales.refunds",), **MANUAL),
)
"""One of each state."""


def task(name: str, body: str, **more: object) -> Task:
    """A started task in the schema sales."""
    definition = Definition(
        name, DefinitionType.TASK, Name("spark_catalog", "sales", name), {}, None, NOW - DAY, "ann", ""
    )
    facts: dict[str, object] = {"place": ("spark_catalog", "sales"), "is_suspended": False, "since_ms": NOW - DAY}
    return Task(definition, body, **(facts | more))  # type: ignore[arg-type]  # each has the type of its field


ROOT_TASK = task("load", "MERGE INTO daily USING (SELECT * FROM orders_st) AS s ON …", schedule=Minutes(300_000))
TASKS = (
    (ROOT_TASK, ROOT_TASK),
    (task("publish", "REFRESH DYNAMIC TABLE dwh.daily", after=(ROOT_TASK.name,)), ROOT_TASK),
)
"""A graph of two: one reads a stream, and one refreshes a dynamic table."""


def buckets(seed: int, *, known: bool = True, every: float = 0.8) -> tuple[Bucket, ...]:
    """Consumptions over the window."""
    r = random.Random(seed)
    made = []
    for part in range(PARTS):
        if r.random() > every:
            continue
        rows = int(r.lognormvariate(5, 1))
        updates = rows // 4
        changes = (
            {"INSERT": rows, "UPDATE_BEFORE": updates, "UPDATE_AFTER": updates, "DELETE": rows // 9} if known else {}
        )
        failed = int(r.random() < 0.06)
        error = "[DIVIDE_BY_ZERO] <b>Division</b> by zero" if failed else None
        made.append(Bucket(part, 1 + r.randrange(3), failed, 1 + r.randrange(12), changes, 0 if known else rows, error))
    return tuple(made)


def report(count: int) -> Report:
    """A report of so many streams: the samples, and then as many like each other."""
    more = [
        stream(
            f"db{n % 7}.stream_{n:03}",
            CURRENT if n % 3 else lagging(1 + n % 9, 100 * n, (1 + n % 6) * DAY),
            source=f"db{n % 7}.table_{n // 4:02}",
            last=consumed((n % 50) * 60_000),
        )
        for n in range(max(0, count - len(SAMPLES)))
    ]
    streams = (*SAMPLES[:count], *more)
    history = {
        s.uuid: buckets(n, known=n % 4 != 2, every=0.2 + (n % 9) / 10)
        for n, s in enumerate(streams)
        if s.last is not None
    }
    flows = {
        s.uuid: tuple(Flow(t, 12 * (n + 1), 4000, NOW - HOUR) for t in s.last.targets)
        for n, s in enumerate(streams)
        if s.last
    }
    if count > len(SAMPLES):
        flows |= {s.uuid: (Flow(f"dwh.target_{n // 3:02}", 1 + n, None, NOW),) for n, s in enumerate(more)}
    tables, tasks = (DYNAMIC, TASKS) if count > len(SAMPLES) else ((), ())
    seen = Overview(NOW, tuple(sorted(streams, key=lambda s: s.name)), tables, tasks)
    return Report(seen, Window(NOW - 7 * DAY, NOW), history, flows)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(report(int(sys.argv[2]))), encoding="utf-8")
