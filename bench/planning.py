"""What comes before any row is read: the log read, the plan made."""

from __future__ import annotations

from bench.changes import ours, read
from bench.context import Context
from bench.measuring import Benchmark, Case, Target
from bench.tables import Built, latest
from streamql.changes import explain
from streamql.model import StreamMode, Versions

COMMITS = 10
INSERT = "INSERT INTO {t} VALUES (-1L, 0L, 'x', 0D, timestamp'2020-01-01')"


def plan_last(context: Context, built: Built) -> None:
    """Plans the last commits of a table."""
    version = latest(built.path)
    explain(context.spark, built.path, Versions(version - COMMITS, version), StreamMode.STANDARD)


def many_files(context: Context, rows: int) -> list[Case]:
    """Ten commits of a table of many files, and of one of few; before each read a row is inserted, so that there is something new."""
    base = context.tables.base(4000)
    tables = {
        "streamql": context.tables.by_hand(base, "files_100000", 100, 1000, [INSERT] * COMMITS, real=False),
        "100 files": context.tables.by_hand(base, "files_100", 1, 100, [INSERT] * COMMITS, real=False),
    }

    def case(name: str, built: Built) -> Case:
        return Case(name, lambda: plan_last(context, built), lambda: context.spark.sql(INSERT.format(t=built.name)))

    return [case(name, built) for name, built in tables.items()]


def many_commits(context: Context, rows: int) -> list[Case]:
    """A thousand commits of one small file each: the plan alone, and with the rows."""
    built = context.tables.by_hand(context.tables.base(4000), "commits_1000", 1000, 1)
    interval = Versions(built.after, built.through)

    def plan() -> None:
        explain(context.spark, built.path, interval, StreamMode.STANDARD)

    return [Case("streamql", plan), Case("with the rows", lambda: read(ours(built)))]


BENCHMARKS = (
    Benchmark(
        "plan_100000", "planning ten commits of a table of 100,000 files", many_files, 0, (Target(1.5, "100 files"),)
    ),
    Benchmark("plan_1000_commits", "planning an interval of 1,000 small commits", many_commits, 0, (Target(3.0),)),
)
