"""Dynamic tables at a version, a time or a stream; and what is refused by their names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dynamic.support import DynamicPlace

pytestmark = pytest.mark.usefixtures("quick")

LABELS = ("DYNAMIC TABLE", "MATERIALIZED VIEW")


@pytest.mark.parametrize("label", LABELS)
def test_points(place: DynamicPlace, label: str) -> None:
    """The versions are those that streams on it show; hidden columns are never shown."""
    place.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    place.run(f"CREATE {label} d AS SELECT id, v FROM t", f"CREATE STREAM s ON {label} d")
    first: list[Any] = place.run("SELECT * FROM d ORDER BY id")
    version = int(place.run("SHOW STREAMS")[0]["offset_version"])
    time = place.value("SELECT stream_table_timestamp('s')")
    place.run("UPDATE t SET v = 11 WHERE id = 1", f"REFRESH {label} d")
    name = place.schema
    at = f"VERSION => {version}"
    sources = (
        f"d VERSION AS OF {version}",
        f"d FOR SYSTEM_VERSION AS OF {version}",
        f"{name}.d VERSION AS OF {version}",
        f"spark_catalog.{name}.d VERSION AS OF '{version}'",
        f"d TIMESTAMP AS OF '{time}'",
        f"d TIMESTAMP AS OF timestamp'{time}' + INTERVAL 0 SECONDS",
        f"d AT ({at})",
        f"d AT (TIMESTAMP => '{time}')",
        f"d BEFORE (VERSION => {version + 1})",
        "d AT (STREAM => 's')",
        f"(SELECT * FROM d VERSION AS OF {version})",
    )
    for source in sources:
        assert place.run(f"SELECT * FROM {source} ORDER BY id") == first, source
    assert place.run("SELECT * FROM d END (STREAM => 's') ORDER BY id") == [(1, 11), (2, 20)]
    joined = f"SELECT d.id, d.v, old.v AS was FROM d JOIN d VERSION AS OF {version} AS old ON d.id = old.id WHERE d.v <> old.v"
    assert place.run(joined) == [(1, 11, 10)]
    assert place.run(f"SELECT id FROM t WHERE id IN (SELECT id FROM d VERSION AS OF {version} WHERE d.v = 10)") == [
        (1,)
    ]
    assert place.run(f"WITH c AS (SELECT * FROM d VERSION AS OF {version}) SELECT sum(v) FROM c") == [(30,)]
    place.run(
        f"CREATE TABLE copy AS SELECT * FROM d VERSION AS OF {version}", f"CREATE VIEW w AS SELECT * FROM d AT ({at})"
    )
    place.run(f"CREATE VIEW x AS SELECT * FROM d VERSION AS OF {version}", "USE default")
    for copy in ("copy", "w", "x"):
        assert place.run(f"SELECT * FROM {name}.{copy} ORDER BY id") == first
    place.run(f"USE {name}")
    changes = f"SELECT __change_type, id, v FROM d CHANGES (INFORMATION => DEFAULT) AT ({at})"
    assert place.bag(changes) == {("UPDATE_BEFORE", 1, 10): 1, ("UPDATE_AFTER", 1, 11): 1}
    for point in ("VERSION AS OF 77", "VERSION AS OF 'x'", "TIMESTAMP AS OF '2001-01-01'", "AT (VERSION => 77)"):
        assert place.refused(f"SELECT * FROM d {point}").code == "INVALID_POINT_IN_TIME"
    place.run("CREATE STREAM other ON TABLE t")
    refused = place.refused("SELECT * FROM d AT (STREAM => 'other')")
    assert f"it reads spark_catalog.{name}.t" in refused.message or f"it reads {name}.t" in refused.message
    refused = place.refused("SELECT * FROM t AT (STREAM => 's')")
    assert f"{name}.d" in refused.message
    assert "__dynamic_" not in refused.message
    refused = place.refused(f"CREATE DYNAMIC TABLE e AS SELECT id FROM d VERSION AS OF {version}")
    assert refused.code == "UNSUPPORTED_SOURCE", refused.message
    place.run("CREATE TEMPORARY VIEW d AS SELECT 1 AS one")  # comes first
    with pytest.raises(Exception, match=r"(?i)view|time travel"):
        place.run("SELECT * FROM d VERSION AS OF 1")
    place.run("DROP VIEW d")


WRITES = {
    "INSERT INTO d VALUES (3, 30)": "INSERT INTO",
    "INSERT OVERWRITE d VALUES (3, 30)": "INSERT OVERWRITE",
    "INSERT INTO d (id, v) SELECT id, v FROM t": "INSERT INTO",
    "UPDATE d SET v = 1": "UPDATE",
    "DELETE FROM d WHERE id = 1": "DELETE FROM",
    "MERGE INTO d AS a USING t ON a.id = t.id WHEN MATCHED THEN UPDATE SET v = t.v": "MERGE INTO",
    "TRUNCATE TABLE d": "TRUNCATE TABLE",
    "WITH c AS (SELECT 3, 30) INSERT INTO d SELECT * FROM c": "INSERT INTO",
}
ALTERS = (
    "ALTER TABLE d ADD COLUMN c INT",
    "ALTER TABLE d DROP COLUMN v",
    "ALTER TABLE d RENAME COLUMN v TO w",
    "ALTER TABLE d ALTER COLUMN v TYPE DOUBLE",
    "ALTER TABLE d RENAME TO e",
    "ALTER VIEW d RENAME TO e",
    "ALTER TABLE d SET TBLPROPERTIES ('a' = 'b')",
    "ALTER VIEW d UNSET TBLPROPERTIES ('streamql.dynamicTable')",
    "COMMENT ON TABLE d IS 'x'",
)


@pytest.mark.parametrize("label", LABELS)
def test_refused_by_name(place: DynamicPlace, label: str) -> None:
    """They say what it is and what to type; the table stays as it was."""
    place.run("INSERT INTO t VALUES (1, 10)", f"CREATE {label} d AS SELECT id, v FROM t")
    name = f"{place.schema}.d"
    for text, statement in WRITES.items():
        refused = place.refused(text)
        assert refused.code == "UNSUPPORTED_TARGET", text
        assert refused.message.startswith(
            f"{statement}: spark_catalog.{name} is a {label.lower()}"
        ) or refused.message.startswith(f"{statement}: {name} is a {label.lower()}"), refused.message
        assert f"REFRESH {label}" in (refused.hint or "")
    for text in ALTERS:
        refused = place.refused(text)
        assert (refused.code, f"ALTER {label}" in (refused.hint or "")) == ("NAME_ALREADY_IN_USE", True), (
            text,
            refused,
        )
    assert place.run("SELECT * FROM d") == [(1, 10)]
    if label == "DYNAMIC TABLE":
        assert place.verify()[0] == "EQUAL"


def test_show_tables(place: DynamicPlace) -> None:
    """The tables that hold the rows are not listed, unless the pattern asks for them."""
    place.create("SELECT id, v FROM t")
    (backing,) = [r["tableName"] for r in place.run("SHOW TABLES LIKE '__dynamic_*'")]
    assert place.backing().endswith(backing)
    for text in (
        "SHOW TABLES",
        f"SHOW TABLES IN {place.schema}",
        "SHOW TABLES LIKE '*'",
        "SHOW TABLES FROM " + place.schema,
    ):
        assert {r["tableName"] for r in place.run(text)} == {"d", "t", "u"}, text
