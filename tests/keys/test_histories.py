"""Streams by key over a table that is changed, overwritten, replaced and restored at random: their change sets are the differences of the
versions, by an oracle that only compares snapshots.

STREAMQL_LONG=20 make test TESTS=tests/keys/test_histories.py    # so many histories
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from streamql.changes import plan as row_plan
from streamql.features.keys.source import plan
from tests.consume.support import run
from tests.histories.columns import canonical
from tests.keys.rebuilt import CHANGES, OTHERS, REBUILDS, Key, Rebuilt, Values, filled, net
from tests.sample import SEED, amount

STEPS = 14
READS = 12


@contextmanager
def read_as_large() -> Iterator[None]:
    """Reads a few rows as many are read: ids of carried rows first, hashes in buckets, which keys share here, then a shuffle."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_plan, "CARRIED_BYTES_MIN", 0)
        patch.setattr(plan, "CARRIED_BYTES_MIN", 0)
        patch.setattr(row_plan, "ONE_TASK_FILES_MAX", 0)
        patch.setattr(plan, "BUCKET_BITS_MIN", 3)
        patch.setattr(plan, "BUCKET_BITS_MAX", 3)
        yield


@pytest.mark.every_case
@pytest.mark.parametrize("number", range(amount(1, 5)))
def test_change_sets_by_key_are_the_differences_of_versions(spark: SparkSession, number: int) -> None:
    table = filled(spark, "rebuilt", SEED * 1000 + number)
    began = max(table.snapshots)
    run(spark, "CREATE STREAM s ON TABLE t IDENTITY = KEY")
    for step in range(STEPS):
        table.change((CHANGES, REBUILDS, (*REBUILDS, *OTHERS))[step % 3])
    try:
        _check(
            table, began, max(table.snapshots), "s"
        )  # which knows the key, even if a replacement dropped its declaration
        run(spark, "ALTER TABLE t DROP PRIMARY KEY IF EXISTS")
        run(spark, "ALTER TABLE t ADD PRIMARY KEY (k, part) RELY")
        table.note()
        _check_intervals(table)
    except Exception:
        print(f"seed {SEED * 1000 + number}", *table.log, sep="\n")
        raise


def _check_intervals(table: Rebuilt) -> None:
    last = max(table.snapshots)
    first = min(v for v, rows in table.snapshots.items() if rows)
    intervals = [(first, last), (last - 1, last)]
    pairs = (sorted(table.rng.sample(range(first, last + 1), 2)) for _ in range(READS))
    intervals += [(after, through) for after, through in pairs]
    for after, through in intervals:
        relation = _changes(after, through, "DEFAULT")
        _check(table, after, through, relation)
        with read_as_large():
            _check(table, after, through, relation)
    appended = table.rng.sample(intervals, 3)
    for after, through in appended:
        _check_appended(table, after, through)


def _changes(after: int, through: int, mode: str) -> str:
    return f"t CHANGES (INFORMATION => {mode}, IDENTITY => KEY) AT (VERSION => {after}) END (VERSION => {through})"


def _rows(table: Rebuilt, relation: str) -> list[tuple[str, int | None, Values, Hashable]]:
    """The change type, version, values and id of each row."""
    rows = run(table.spark, f"SELECT *, METADATA$ROW_ID AS id FROM {relation}")
    return [(r[0], r[1], tuple(canonical(x) for x in r[3:-1]), r["id"]) for r in rows]


def _in_columns(rows: dict[Key, Values], had: list[str], has: list[str]) -> dict[Key, Values]:
    """Rows in the columns of another version; those that they lack are NULL."""
    places = [had.index(c) if c in had else None for c in has]
    return {key: tuple(None if p is None else values[p] for p in places) for key, values in rows.items()}


def _check(table: Rebuilt, after: int, through: int, relation: str) -> None:
    columns = table.columns[through]
    before, now = _in_columns(table.snapshots[after], table.columns[after], columns), table.snapshots[through]
    expected: Counter[tuple[str, Values]] = Counter()
    for what, old, new in net(before, now).values():
        is_update = what == "UPDATE"
        if old is not None:
            expected["UPDATE_BEFORE" if is_update else "DELETE", old] += 1
        if new is not None:
            expected["UPDATE_AFTER" if is_update else "INSERT", new] += 1
    rows = _rows(table, relation)
    found = Counter((what, values) for what, _, values, _ in rows)
    assert found == expected, relation
    key_at = [columns.index("k"), columns.index("part")]
    ids: dict[Hashable, Hashable] = {}
    for what, version, values, row_id in rows:
        key = tuple(values[i] for i in key_at)
        assert ids.setdefault(key, row_id) == row_id
        if version is None:
            continue  # no row tracking says it
        if what in ("DELETE", "UPDATE_BEFORE"):
            assert version <= after
        else:
            is_own = _changed_at(table, key, columns, after, through) <= version <= through
            assert is_own or table.restored  # which brings back rows with the versions that they had
    assert len(set(ids.values())) == len(ids)


def _changed_at(table: Rebuilt, key: Key, columns: list[str], after: int, through: int) -> int:
    """The last version of an interval that changed the values of a key."""
    seen = [(v, _in_columns(table.snapshots[v], table.columns[v], columns).get(key)) for v in range(after, through + 1)]
    return max(v for (_, old), (v, new) in pairwise(seen) if old != new)


def _check_appended(table: Rebuilt, after: int, through: int) -> None:
    columns = table.columns[through]
    expected: Counter[Values] = Counter()
    for version in range(after + 1, through + 1):
        if version in table.restored:
            continue
        before, now = (
            table.snapshots[version - 1],
            _in_columns(table.snapshots[version], table.columns[version], columns),
        )
        expected.update(values for key, values in now.items() if key not in before)
    rows = _rows(table, _changes(after, through, "APPEND_ONLY"))
    assert Counter(values for _, _, values, _ in rows) == expected, f"({after}, {through}], appended"
    assert {what for what, _, _, _ in rows} <= {"INSERT"}
