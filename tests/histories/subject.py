"""The code under test: the only module here that calls it.

STREAMQL_SUBJECT chooses: `engine` (streamql.changes, the default) or `join` (Spark's own full join of two snapshots, to
test these tests).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from streamql.errors import StreamqlError
from streamql.model import METADATA_COLUMNS, StreamMode, Versions

from .columns import canonical
from .oracles import Bag, Change
from .recording import TableLog, quoted
from .spark_oracles import snapshot_join

SUBJECT: Final = os.environ.get("STREAMQL_SUBJECT", "engine")

HAS_PLANS: Final = SUBJECT == "engine"
HAS_APPEND_ONLY: Final = SUBJECT != "join"
HAS_INITIAL: Final = SUBJECT == "engine"

REQUIRED_PLANS: Final = frozenset(
    {
        "NOTHING",
        "ADDED_ONLY",
        "REMOVED_ONLY",
        "MINIMIZE",
        "MINIMIZE shuffled",
        "MINIMIZE with moves",
        "MINIMIZE_CARRIED",
        "MINIMIZE_CARRIED shuffled",
        "MINIMIZE_CARRIED with moves",
        "MINIMIZE_MOVED",
        "MINIMIZE_MOVED shuffled",
        "APPENDED",
        "INITIAL_ROWS",
        "INITIAL_APPENDED",
    }
)
"""The plan types that a full run must have taken."""


def change_set(spark: SparkSession, path: str, interval: Versions, mode: StreamMode) -> DataFrame:
    """The change set as the subject makes it."""
    if SUBJECT == "engine":
        from streamql import changes

        return changes.change_set(spark, path, interval, mode)
    return snapshot_join(spark, path, interval.after, interval.through)


def plan_type(spark: SparkSession, path: str, interval: Versions, mode: StreamMode) -> str:
    """The name of the plan the engine takes."""
    from streamql import changes

    plan = changes.explain(spark, path, interval, mode)
    shuffled = plan.type.name.startswith("MINIMIZE") and not plan.meets_in_one_task
    return plan.type.name + (" with moves" if plan.moves else "") + (" shuffled" if shuffled else "")


def plan_of(spark: SparkSession, path: str, interval: Versions, mode: StreamMode) -> str | None:
    """`plan_type`, or None for a subject that has no plans."""
    return plan_type(spark, path, interval, mode) if HAS_PLANS else None


def quick_plans(spark: SparkSession, path: str) -> Callable[[Versions], str]:
    """Returns what names the plan of each interval of a table, without a job: its commits are read once, and deletion vectors are not. So
    the plan that is taken may have less to read. What is named alike may be refused alike."""
    if not HAS_PLANS:
        return lambda _: ""
    from streamql.changes import plan, read_commits
    from streamql.delta.table import DeltaTable

    table = DeltaTable(spark, path)
    latest = table.latest()
    commits = read_commits(table, latest, Versions(0, latest.version))

    def name(interval: Versions) -> str:
        try:
            found = plan.plan_changes(commits[interval.after : interval.through], interval, StreamMode.STANDARD)
        except StreamqlError as error:
            return error.code
        return f"{found.type.name} {bool(found.moves)} {found.meets_in_one_task} {any(p.other for p in found.pieces)}"

    return name


def shown(spark: SparkSession, path: str, interval: Versions, mode: StreamMode, columns: list[str]) -> DataFrame:
    """The change set without hidden columns: the three metadata columns, then the table's, by name."""
    return change_set(spark, path, interval, mode).select(*METADATA_COLUMNS, *[quoted(c) for c in columns])


def collected(spark: SparkSession, log: TableLog, interval: Versions, mode: StreamMode) -> Bag:
    """The change set as a bag of canonical rows."""
    rows = shown(spark, log.path, interval, mode, [c.name for c in log.columns[interval.through]])
    bag: Bag = Counter()
    for row in rows.collect():
        bag[Change(row[0], row[1], row[2], tuple(canonical(v) for v in row[3:]))] += 1
    return bag
