"""The lineage of columns against an independent answer: a column of a result that differs once the values of a column of a table were
changed must name that column, and columns that are copied must be IDENTITY."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import analyzed
from streamql.delta.queries import lineage_of

pytestmark = pytest.mark.every_case

TABLES = {"a": ("k INT", "g STRING", "n INT", "m DOUBLE"), "b": ("k INT", "p DOUBLE", "h STRING")}
ROWS = {
    "a": [(1, "x", 5, 0.5), (2, "x", -3, 1.5), (3, "y", 9, 2.5), (4, "z,x", 0, 3.5), (5, "y", 7, None)],
    "b": [(1, 10.0, "u"), (2, 20.0, "v"), (3, 30.0, "u"), (7, 70.0, "w")],
}
CHANGED = {"INT": "{c} + 2", "DOUBLE": "coalesce({c}, 0) * 3 + 1", "STRING": "concat('q', {c})"}
"""What becomes of a value."""

QUERIES = (
    "SELECT k, upper(g) AS g, n + m AS s FROM a WHERE n > 0",
    "SELECT a.k, b.p, CASE WHEN a.n > 4 THEN b.h ELSE a.g END AS c FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT g, count(*) AS c, sum(n) FILTER (WHERE m > 1) AS s, max(m) AS x FROM a GROUP BY g HAVING count(*) > 0",
    "SELECT k, row_number() OVER (PARTITION BY g ORDER BY n) AS r, sum(m) OVER (PARTITION BY g) AS w FROM a",
    "SELECT k, g AS t FROM a UNION ALL SELECT k, h FROM b",
    "SELECT k FROM a EXCEPT SELECT k FROM b",
    "WITH q AS (SELECT g, avg(n) AS v FROM a GROUP BY g) SELECT a.k, q.v FROM a JOIN q ON a.g = q.g",
    "SELECT k, (SELECT max(p) FROM b WHERE b.k = a.k) AS x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k >= a.k)",
    "SELECT k, part FROM a LATERAL VIEW explode(split(g, ',')) AS part",
    "SELECT s.f AS f, s.l[0] AS l FROM (SELECT named_struct('f', k, 'l', array(n, k)) AS s FROM a)",
    "SELECT * FROM (SELECT g, n FROM a) PIVOT (sum(n) FOR g IN ('x', 'y'))",
    "SELECT DISTINCT g, IF(n IN (SELECT k FROM b), 'in', 'out') AS i FROM a",
    "SELECT k, n FROM a ORDER BY m LIMIT 2",
    "SELECT g, grouping(g) AS o, sum(n) AS s FROM a GROUP BY ROLLUP (g)",
)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> SparkSession:
    spark.sql("CREATE SCHEMA columns")
    spark.sql("USE columns")
    for name, columns in TABLES.items():
        spark.createDataFrame(ROWS[name], ", ".join(columns)).write.format("delta").saveAsTable(name)
    return spark


def results(frame: DataFrame) -> list[Counter[object]]:
    """The values of each column, without their order."""
    rows = frame.collect()
    return [Counter(str(row[i]) for row in rows) for i in range(len(frame.columns))]


@pytest.mark.parametrize("query", QUERIES)
def test_a_column_that_differs_names_what_was_changed(tables: SparkSession, query: str) -> None:
    frame = tables.sql(query)
    lineage = json.loads(lineage_of(tables, analyzed(frame)))
    names = [one["name"].rsplit(".", 1)[-1] for one in lineage["inputs"]]
    before = results(frame)
    rows = {(names[o["input"]], o["field"]) for o in lineage["rows"]}
    depends = [{(names[o["input"]], o["field"]) for o in lineage["columns"].get(c, ())} | rows for c in frame.columns]
    wrong = []
    for table in sorted(set(names)):
        columns = TABLES[table]
        for column, kind in (c.split() for c in columns):
            changed = CHANGED[kind].format(c=column)
            values = ", ".join(f"{changed if c == column else c} AS {c}" for c, _ in (d.split() for d in columns))
            text = f"WITH {table} AS (SELECT {values} FROM columns.{table}) SELECT * FROM ({query})"
            after = results(tables.sql(text))
            wrong += [
                f"{frame.columns[i]} depends on {table}.{column}"
                for i, (was, now) in enumerate(zip(before, after, strict=True))
                if was != now and (table, column) not in depends[i]
            ]
    assert wrong == []


def test_what_is_copied_is_identity(tables: SparkSession) -> None:
    lineage = json.loads(lineage_of(tables, analyzed(tables.sql("SELECT k AS i, CAST(n AS BIGINT) AS b, m FROM a"))))
    ways = {c: [(o["field"], o["ways"]) for o in origins] for c, origins in lineage["columns"].items()}
    assert ways == {"i": [("k", ["IDENTITY"])], "b": [("n", ["IDENTITY"])], "m": [("m", ["IDENTITY"])]}
    assert lineage["rows"] == []
