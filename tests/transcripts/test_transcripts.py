"""Every transcript of sql/ holds; the seed's two hold by every road that leads to Spark.

pytest tests/transcripts                     # one of the two by each further road
STREAMQL_LONG=1 pytest tests/transcripts     # both
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamql
from tests.sample import IS_LONG, sample
from tests.settings.hostile import FOR_TRANSCRIPTS_SET
from tests.small import SHORT_LIVED_ARGUMENTS
from tests.transcripts.__main__ import transcripts
from tests.transcripts.masks import Bindings, match_table
from tests.transcripts.running import RunSql, plain_sql, run
from tests.transcripts.script import read
from tests.transcripts.tables import Table, parse_table, tables_in

ROOT = Path(__file__).resolve().parents[2]
SEEDS = [path for path in transcripts() if path.name.startswith(("01-", "02-"))]
BY_STREAMQL = sample("seeds through streamql.sql", SEEDS, 1)
BY_COMMAND = SEEDS if IS_LONG else [path for path in SEEDS if path not in BY_STREAMQL]
COMMAND_SECONDS_MAX = 300


def check(path: Path, spark: SparkSession, run_sql: RunSql, bootstrap: Callable[[], str] | None = None) -> None:
    outcomes = run(read(path), spark, run_sql, bootstrap)
    differences = [str(o.difference) for o in outcomes if o.difference is not None]
    assert not differences, "\n" + "\n".join(differences)


@pytest.mark.every_case
@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
def test_transcript(path: Path, spark: SparkSession, bootstrap: Callable[[], str]) -> None:
    check(path, spark, plain_sql, bootstrap)


@pytest.mark.parametrize("path", BY_STREAMQL, ids=lambda path: path.stem)
def test_seed_through_streamql_sql(path: Path, spark: SparkSession) -> None:
    def by_streamql(text: str, connection: SparkSession) -> DataFrame:
        return streamql.sql(text, connection)

    check(path, spark, by_streamql)


@pytest.mark.spark
def test_seeds_through_the_command(tmp_path: Path) -> None:
    """Plans are compiled here. Also under settings, as of a spark-defaults.conf, that change nothing of what the seeds show."""
    arguments = [sys.executable, "-m", "streamql", "-S", "--data", str(tmp_path / "data")]
    arguments += [*SHORT_LIVED_ARGUMENTS, "--conf", "spark.sql.session.timeZone=UTC"]
    arguments += [word for key, value in FOR_TRANSCRIPTS_SET.items() for word in ("--conf", f"{key}={value}")]
    for path in BY_COMMAND:
        script = tmp_path / f"{path.stem}.sql"
        script.write_text("".join(f"{step.text};\n" for step in read(path).steps), encoding="utf-8")
        arguments += ["-f", str(script)]
    ran = subprocess.run(
        arguments,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    shown = tables_in(ran.stdout)
    for path in BY_COMMAND:
        expected = [table for step in read(path).steps if (table := parse_table(step.block)) is not None]
        shown, rest = shown[: len(expected)], shown[len(expected) :]
        assert_same(expected, shown)
        shown = rest
    assert not shown


def assert_same(expected: list[Table], shown: list[Table]) -> None:
    bindings: Bindings = {}
    assert len(expected) == len(shown)
    for one, other in zip(expected, shown, strict=True):
        after = match_table(one, other, bindings, in_order=False, times_as_written=True)
        assert after is not None, f"{other}\nis not\n{one}"
        bindings = after
