"""Rows that come again with other ids, equal to those that go: no stream on a dynamic table shows them, and none counts as written."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.consume.support import TRACKED
from tests.dynamic.support import DynamicPlace
from tests.lines import COPIES_VARIANTS

pytestmark = pytest.mark.usefixtures("quick")

DOCUMENT = "VARIANT" if COPIES_VARIANTS else "STRING"
STRUCT = "named_struct('a', array(1.5F, NULL), 'b', parse_json('{\"p\": 1, \"q\": [2]}'))"
ROWS = (
    f"(1, 0.0D, map('k', 1, 'l', 2), {STRUCT})",
    f"(1, 0.0D, map('k', 1, 'l', 2), {STRUCT})",
    "(2, double('NaN'), NULL, NULL)",
    "(NULL, NULL, map('k', CAST(NULL AS INT)), named_struct('a', NULL, 'b', parse_json('null')))",
    "(3, 7.0D, map(), named_struct('a', array(), 'b', NULL))",
)
SAME = [
    row.replace("map('k', 1, 'l', 2)", "map('l', 2, 'k', 1)").replace("0.0D, m", "double('-0.0'), m")
    for row in reversed(ROWS)
]
"""The same rows in another order. The entries of maps have another one, too, and zero has another sign."""

TABLES = {
    "d": ("FULL", "SELECT id, x, m, s FROM e"),
    "b": ("INCREMENTAL", "SELECT id, x, m, s FROM e UNION ALL SELECT id + 100, -x, m, s FROM e WHERE id IS NULL"),
    "j": ("AUTO", "SELECT e.id, e.x, e.m, e.s, o.w FROM e LEFT JOIN (SELECT id, w FROM u) o ON e.id = o.id"),
}


def made_of(rows: Iterable[str]) -> str:
    return (
        f"CREATE OR REPLACE TABLE e USING DELTA {TRACKED} AS SELECT CAST(col1 AS BIGINT) AS id, col2 AS x, "
        f"CAST(col3 AS MAP<STRING, INT>) AS m, CAST(col4 AS STRUCT<a: ARRAY<FLOAT>, b: {DOCUMENT}>) AS s "
        f"FROM VALUES {', '.join(rows)}"
    )


def refreshed(
    place: DynamicPlace, tables: Iterable[str], rows: tuple[int, int, int], shown: dict[tuple[str, float | None], int]
) -> None:
    """Refreshes: how many rows each table writes, and what the stream on it shows of x. If it writes some, it equals its query."""
    for name in tables:
        assert place.refresh(name)[name][2:] in (rows, *([(None, None, None)] if rows == (0, 0, 0) else [])), name
        assert place.bag(f"SELECT __change_type, x FROM {name}_s") == shown, name
        assert place.value(f"SELECT stream_has_data('{name}_s')") is bool(shown), name
        assert rows == (0, 0, 0) or place.verify(name)[0] == "EQUAL", name


def test_equal_rows_of_a_rewritten_source(place: DynamicPlace) -> None:
    place.run(made_of(ROWS), "INSERT INTO u VALUES (1, 'a'), (3, 'c')")

    def streams() -> None:
        for name in TABLES:
            place.run(f"CREATE OR REPLACE STREAM {name}_s ON DYNAMIC TABLE {name}")

    for name, (mode, query) in TABLES.items():
        place.create(query, name, f"REFRESH_MODE = {mode}")
    streams()
    place.run("INSERT OVERWRITE e SELECT * FROM e ORDER BY id DESC")
    refreshed(place, TABLES, (0, 0, 0), {})
    assert place.history("b")[0]["mode"] == "INCREMENTAL"
    assert place.history("j")[0]["mode"] == "FULL"
    place.run("UPDATE e SET x = 8 WHERE id = 3")  # by the rows' new keys
    refreshed(place, TABLES, (0, 1, 0), {("UPDATE_BEFORE", 7.0): 1, ("UPDATE_AFTER", 8.0): 1})
    place.run("INSERT OVERWRITE e SELECT id, nullif(x, 8.0D), m, s FROM e")  # one row differs
    streams()
    refreshed(place, TABLES, (1, 0, 1), {("DELETE", 8.0): 1, ("INSERT", None): 1})
    # The ids of a new table begin at 0 as well, but those are of other rows.
    for write in ([made_of(SAME)], ["DROP TABLE e", made_of(ROWS)]):
        place.run(made_of(ROWS), *(f"REFRESH DYNAMIC TABLE {name}" for name in TABLES), *write)
        streams()
        refreshed(place, TABLES, (0, 0, 0), {})
        place.run("DELETE FROM e WHERE id = 3")
        refreshed(place, TABLES, (0, 0, 1), {("DELETE", 7.0): 1})
    place.run("RESTORE TABLE e TO VERSION AS OF 0")
    streams()
    refreshed(place, TABLES, (1, 0, 0), {("INSERT", 7.0): 1})


GROUPS = {
    "d": ("AUTO", "SELECT v, max(id) AS m FROM t GROUP BY v"),
    "i": ("INCREMENTAL", "SELECT v, max(id) AS m FROM t GROUP BY v"),
    "p": ("INCREMENTAL", "SELECT DISTINCT v FROM t"),
    "n": ("INCREMENTAL", "SELECT sum(id) > 0 AS x, max(v) > 0 AS y FROM t GROUP BY v % 10"),
}


def test_a_group_whose_hidden_columns_alone_change(place: DynamicPlace) -> None:
    """It lost one of two equal rows, or has more of them."""
    place.run("INSERT INTO t VALUES (1, 10), (1, 10), (2, 20)")
    for name, (mode, query) in GROUPS.items():
        place.create(query, name, f"REFRESH_MODE = {mode}")
        place.run(f"CREATE STREAM {name}_s ON DYNAMIC TABLE {name}")
    place.run("INSERT INTO t VALUES (1, 10)")
    for name in GROUPS:
        assert place.refresh(name)[name][2:] == (0, 0, 0), name
        assert place.value(f"SELECT stream_has_data('{name}_s')") is False, name
        assert place.run(f"SELECT * FROM {name}_s") == [], name
    place.run("DELETE FROM t WHERE v = 10")  # by the hidden columns as they are now
    for name in GROUPS:
        place.refresh(name)
        assert place.value(f"SELECT stream_has_data('{name}_s')") is (name != "n"), name
        assert place.verify(name)[0] == "EQUAL", name
