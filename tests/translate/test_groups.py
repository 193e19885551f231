"""VARIANT columns in what groups or compares rows, which Spark refuses: a note says which to cast."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import System, Translated
from streamql.features.translate.script import translate

SNOWFLAKE, DATABEND, CLICKZETTA = System
TABLES = """
CREATE TABLE t (id INT, doc VARIANT, name VARCHAR);
CREATE TABLE u (id INT, doc VARIANT, more VARIANT);
CREATE STREAM s ON TABLE t;
"""

NOTED = [
    # GROUP BY
    ("SELECT doc, COUNT(*) FROM t GROUP BY doc", "doc"),
    ("SELECT doc, COUNT(*) FROM t GROUP BY 1", "doc"),
    ("SELECT doc:a AS a, COUNT(*) FROM t GROUP BY 1", "doc:a"),
    ("SELECT doc AS d, COUNT(*) FROM t GROUP BY d", "d"),
    ("SELECT name, doc:a AS a, COUNT(*) FROM t GROUP BY ALL", "doc:a"),
    ("SELECT doc, name FROM t GROUP BY ROLLUP (1, name)", "doc"),
    ("SELECT doc, name FROM t GROUP BY GROUPING SETS ((doc), (name))", "doc"),
    ("SELECT f.value, COUNT(*) FROM t, LATERAL FLATTEN(INPUT => doc) f GROUP BY 1", "f.value"),
    ("SELECT TRY_PARSE_JSON(name) AS j FROM t GROUP BY 1", "TRY_PARSE_JSON(name)"),
    # DISTINCT
    ("SELECT DISTINCT doc FROM t", "doc"),
    ("SELECT DISTINCT * FROM u", "doc, more"),
    ("SELECT DISTINCT b.* FROM t a JOIN u b ON a.id = b.id", "doc, more"),
    ("SELECT DISTINCT * EXCLUDE (doc) FROM u", "more"),
    ("SELECT DISTINCT * FROM (SELECT doc:a AS a, name FROM t)", "a"),
    ("WITH c AS (SELECT doc AS d FROM t) SELECT DISTINCT * FROM c", "d"),
    ("SELECT DISTINCT name, doc FROM s", "doc"),
    ("SELECT DISTINCT * EXCLUDE (METADATA$ROW_ID) FROM s", "doc"),
    ("SELECT DISTINCT * FROM t CHANGES (INFORMATION => DEFAULT) AT (OFFSET => 0)", "doc"),
    ("SELECT COUNT(DISTINCT doc) FROM t", "doc"),
    # set operations
    ("SELECT doc FROM t UNION SELECT doc FROM u", "doc"),
    ("SELECT id, doc FROM t INTERSECT SELECT id, doc FROM u", "doc"),
    ("SELECT doc FROM t EXCEPT SELECT doc FROM u", "doc"),
    ("SELECT doc FROM t MINUS SELECT doc FROM u", "doc"),
    ("SELECT id, name FROM t UNION ALL SELECT id, doc FROM u UNION SELECT 1, 'a'", "doc"),
    ("SELECT * FROM t UNION SELECT id, doc, name FROM s", "doc"),
    # joins, windows, orders
    ("SELECT t.id FROM t JOIN u USING (id, doc)", "doc"),
    ("SELECT t.id FROM t NATURAL JOIN u", "doc"),
    ("SELECT id, ROW_NUMBER() OVER (PARTITION BY doc:a ORDER BY id) FROM t", "doc:a"),
    ("SELECT id, doc FROM t ORDER BY 2", "doc"),
    ("SELECT doc FROM t UNION ALL SELECT doc FROM u ORDER BY 1", "doc"),
]

PLAIN = [
    "SELECT name, COUNT(*) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT doc:a::STRING AS a, COUNT(doc) FROM t GROUP BY 1",
    "SELECT name, ANY_VALUE(doc) FROM t GROUP BY ALL",
    "SELECT doc FROM t UNION ALL SELECT doc FROM u",
    "SELECT DISTINCT * EXCLUDE (doc) FROM t",
    "SELECT id FROM t UNION SELECT id FROM u",
    "SELECT t.id FROM t JOIN u USING (id)",
    "SELECT COUNT(*) FROM t NATURAL JOIN (SELECT id FROM u)",
    "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT DISTINCT * FROM c",
]


def _notes(system: System, script: str) -> tuple[str, ...]:
    result = translate(script, system).pieces[-1].result
    assert isinstance(result, Translated)
    return result.notes


@pytest.mark.parametrize(("query", "columns"), NOTED)
def test_a_variant_that_is_grouped_has_a_note(query: str, columns: str) -> None:
    note = f"Spark neither compares, groups, sorts nor calculates with a VARIANT: cast {columns} to a type"
    assert note in _notes(SNOWFLAKE, f"{TABLES}{query};")


@pytest.mark.parametrize("query", PLAIN)
def test_other_columns_have_no_note(query: str) -> None:
    assert not any("VARIANT" in note for note in _notes(SNOWFLAKE, f"{TABLES}{query};"))


@pytest.mark.parametrize("system", [DATABEND, CLICKZETTA])
def test_the_columns_of_other_systems(system: System) -> None:
    """JSON is their name for it too."""
    assert "cast doc to a type" in _notes(system, "CREATE TABLE t (id INT, doc JSON); SELECT DISTINCT * FROM t;")[0]
    assert "cast doc to a type" in _notes(system, "CREATE TABLE t (id INT, doc JSON); SELECT doc FROM t GROUP BY 1;")[0]
