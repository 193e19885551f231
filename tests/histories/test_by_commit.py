"""What each commit of a random history did to rows, against its snapshots, version by version."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.changes import read_commits
from streamql.changes.by_commit import USES_MAX
from streamql.changes.commit_rows import AFTER, BEFORE, CHANGED, History, changes_by_commit
from streamql.delta.table import ROW_ID, DeltaTable
from streamql.delta.uses import TIME, VERSION
from streamql.errors import StreamqlError
from streamql.model import Versions
from tests.sample import IS_LONG, sample

from .columns import canonical
from .histories import make_history
from .oracles import narrows
from .recording import Image, Recording, TableLog, read_log, read_snapshot, record, sql_name
from .tables import TRACKED, Table

Values = dict[str, Hashable]
Change = tuple[Values | None, Values | None]

SEEDS = tuple(range(12))


def oracle(log: TableLog, before: dict[int, Image], after: dict[int, Image], version: int) -> dict[int, Change]:
    """Row id → values before and after, of the rows of which these differ."""
    names = {c.physical: c.name for c in log.columns[version]}

    def shown(image: Image | None) -> Values | None:
        return None if image is None else {name: image.values.get(physical) for physical, name in names.items()}

    found = {row_id: (shown(before.get(row_id)), shown(after.get(row_id))) for row_id in before.keys() | after.keys()}
    return {row_id: change for row_id, change in found.items() if change[0] != change[1]}


def collected(
    spark: SparkSession, path: str, after: int, through: int, uses_max: int = USES_MAX, cuts: tuple[int, ...] = ()
) -> dict[int, dict[int, Change]]:
    """Version → row id → values before and after, by the code under test."""
    table = DeltaTable(spark, path)
    latest = table.latest()
    commits = read_commits(table, latest, Versions(after, through))
    start = None if after < 0 else table.at(after).metadata
    found: dict[int, dict[int, Change]] = {}
    times = {c.version: c.time_ms for c in commits}
    for run in changes_by_commit(spark, History(table, latest, commits, start), cuts=cuts, uses_max=uses_max):
        assert run.rows is not None
        for row in run.rows.collect():
            assert run.first <= row[VERSION] <= run.last
            assert row[TIME] == times[row[VERSION]]
            of_version = found.setdefault(row[VERSION], {})
            assert row[ROW_ID] not in of_version, f"version {row[VERSION]} has row {row[ROW_ID]} twice"
            images = [None if row[c] is None else row[c].asDict() for c in (BEFORE, AFTER)]
            old, new = (None if i is None else {k: canonical(v) for k, v in i.items()} for i in images)
            of_version[row[ROW_ID]] = old, new
            differs = None if old is None or new is None else [old[k] != new[k] for k in old]
            assert row[CHANGED] == differs
    return found


def check(spark: SparkSession, recording: Recording, after: int, through: int, **options: Any) -> None:
    """Compares one interval; where a RESTORE takes back a type change, what is before it and what is since."""
    try:
        found = collected(spark, recording.path, after, through, **options)
    except StreamqlError as error:
        if error.code != "INCOMPATIBLE_SCHEMA_CHANGE" or not narrows(recording, after, through):
            raise
        version = error.facts["version"]
        assert isinstance(version, int)
        assert after < version <= through
        for part in ((after, version - 1), (version, through)):
            if part[0] < part[1]:
                check(spark, recording, *part, **options)
        return
    snapshots = [{}, *recording.snapshots]
    for version in range(after + 1, through + 1):
        expected = oracle(recording.log, snapshots[version], snapshots[version + 1], version)
        assert found.get(version, {}) == expected, f"version {version}\n{recording.describe(after, through)}"


@pytest.mark.parametrize("seed", SEEDS if IS_LONG else sample("histories by commit", SEEDS, 2))
def test_each_commit_of_a_history_is_what_the_snapshots_say(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    recording = record(spark, make_history(seed), str(tmp_path / "history"))
    latest = recording.log.latest
    check(spark, recording, -1, latest)
    check(spark, recording, latest // 3, latest, uses_max=4)
    check(spark, recording, latest // 2, latest - 1, cuts=(latest - 2,))


def check_table(spark: SparkSession, table: Table, after: int = -1) -> dict[int, dict[int, Change]]:
    """Compares all versions of a table after one."""
    log = read_log(table.path)
    found = collected(spark, table.path, after, log.latest)
    before = read_snapshot(spark, log, after) if after >= 0 else {}
    for version in range(after + 1, log.latest + 1):
        now = read_snapshot(spark, log, version)
        assert found.get(version, {}) == oracle(log, before, now, version), f"version {version}"
        before = now
    return found


def test_deletion_vectors_that_grow_and_shrink(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create("id BIGINT, v STRING", properties="'delta.enableDeletionVectors' = 'true'")
    table.run("INSERT INTO {t} SELECT id, 'a' FROM range(0, 1000, 1, 1)")
    first = table.run("DELETE FROM {t} WHERE id % 100 = 1")
    table.run(
        "DELETE FROM {t} WHERE id % 100 = 2",
        "UPDATE {t} SET v = 'b' WHERE id % 100 = 3",
        "OPTIMIZE {t}",
        f"RESTORE TABLE {{t}} TO VERSION AS OF {first}",
        "MERGE INTO {t} t USING (SELECT id + 995 AS id FROM range(10)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id < 998 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'n')",
        "REORG TABLE {t} APPLY (PURGE)",
        "INSERT OVERWRITE {t} SELECT id, 'o' FROM range(50)",
    )
    found = check_table(spark, table)
    assert {v: len(rows) for v, rows in found.items()} == {
        1: 1000,
        2: 10,
        3: 10,
        4: 10,
        6: 20,
        7: 10,
        9: 990 - 3 + 5 + 50,
    }


def test_columns_that_come_go_and_change_their_names(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    table.create(
        "id INT, v STRING, `odd '\\ name` INT",
        properties="'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'",
    )
    table.run(
        "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2)",
        "ALTER TABLE {t} ADD COLUMN w DOUBLE",
        "UPDATE {t} SET w = 1.5 WHERE id = 1",
        "ALTER TABLE {t} RENAME COLUMN v TO label",
        "UPDATE {t} SET label = 'c' WHERE id = 2",
        "ALTER TABLE {t} DROP COLUMN w",
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 10000000000",
        "ALTER TABLE {t} ADD COLUMN v INT",
        "UPDATE {t} SET v = 7",
        "DELETE FROM {t}",
    )
    check_table(spark, table)


def test_many_commits_take_few_jobs(spark: SparkSession, table_path: str) -> None:
    table = Table(spark, table_path)
    spark.sql(f"CREATE TABLE {sql_name(table_path)} (id BIGINT) USING DELTA TBLPROPERTIES ({TRACKED})")
    table.run(*(f"INSERT INTO {{t}} VALUES ({i})" for i in range(30)), "DELETE FROM {t} WHERE id < 10")
    spark.sparkContext.setJobGroup("by commit", "by commit")
    try:
        found = collected(spark, table_path, -1, table.version)
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("by commit")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None removes it
    assert {v: len(rows) for v, rows in found.items()} == {**dict.fromkeys(range(1, 31), 1), 31: 10}
    assert len(jobs) <= 4
