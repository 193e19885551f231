"""Expectations on each type of source: what the target gets by INSERT and by MERGE, what is quarantined, and what FAIL leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.model import Offset
from streamql.names import Name
from tests.consume.support import TRACKED, fresh_schema, run

EXPECTATIONS = (
    "EXPECTATION num CHECK (CAST(amount AS INT) > 0) ON VIOLATION QUARANTINE "
    "EXPECTATION small CHECK (id < 100) ON VIOLATION DROP"
)
FIRST = "INSERT INTO t VALUES (1, '10'), (2, '20'), (3, 'x'), (4, '-4'), (5, NULL), (100, '1')"
"""Three rows are quarantined, and one is dropped."""
THEN = (
    "MERGE INTO t USING (SELECT * FROM VALUES (1, 'bad'), (2, '21'), (3, '33'), (4, 'worse'), (5, NULL) AS v (id, amount)) AS u "
    "ON t.id = u.id WHEN MATCHED AND u.id = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET amount = u.amount"
)
"""A row gets bad, one stays good, one gets good, one stays bad, and one goes."""
MERGE = (
    "MERGE INTO copy USING (SELECT id, CAST(amount AS INT) AS amount, __change_type AS type FROM s "
    "WHERE __change_type <> 'UPDATE_BEFORE') AS s ON copy.id = s.id WHEN MATCHED AND type = 'DELETE' THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED AND type <> 'DELETE' THEN INSERT (id, amount) VALUES (s.id, s.amount)"
)
INSERT = "INSERT INTO copy SELECT id, CAST(amount AS INT) FROM s"

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Source:
    """A source over table t. `made`: statements that make it. `stream`: of CREATE STREAM. `refresh`: what follows each change of t. `then`:
    the second change. `copy`, `quarantined`: what it makes of the target, and puts into the quarantine table."""

    stream: str
    made: tuple[str, ...] = ()
    first: str = FIRST
    refresh: tuple[str, ...] = ()
    then: str = THEN
    copy: tuple[tuple[int, int], ...] = ((2, 21), (3, 33))
    quarantined: tuple[tuple[int, str], ...] = ((1, "bad"), (4, "worse"))


NAMES = "(1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (50, 'f'), (100, 'g')"
REBUILT = "INSERT OVERWRITE t VALUES (1, 'bad'), (2, '21'), (3, '33'), (4, 'worse'), (100, '1')"
SOURCES = {
    "view of one table": Source("ON VIEW v", ("CREATE VIEW v AS SELECT * FROM t WHERE id <> 7",)),
    "view of a join": Source(
        "ON VIEW v",
        (
            f"CREATE TABLE names (i INT, name STRING) {TRACKED}",
            f"INSERT INTO names VALUES {NAMES}",
            "CREATE VIEW v AS SELECT t.id, t.amount, names.name FROM t JOIN names ON t.id = names.i",
        ),
    ),
    "dynamic table": Source(
        "ON DYNAMIC TABLE d",
        ("CREATE DYNAMIC TABLE d AS SELECT id, amount FROM t",),
        refresh=("REFRESH DYNAMIC TABLE d",),
    ),
    "materialized view": Source(
        "ON MATERIALIZED VIEW m",
        ("CREATE MATERIALIZED VIEW m AS SELECT id, upper(amount) AS amount FROM t",),
        refresh=("REFRESH MATERIALIZED VIEW m",),
        quarantined=((1, "BAD"), (4, "WORSE")),
    ),
    "key of a rebuilt table": Source(
        "ON TABLE t IDENTITY = KEY", ("ALTER TABLE t ADD PRIMARY KEY (id) RELY",), then=REBUILT
    ),
    "appended rows": Source(
        "ON TABLE t APPEND_ONLY = TRUE",
        then="INSERT INTO t VALUES (6, '60'), (7, 'y'), (101, '1')",
        copy=((1, 10), (2, 20), (6, 60)),
        quarantined=((7, "y"),),
    ),
    "initial rows": Source("ON TABLE t SHOW_INITIAL_ROWS = TRUE", (FIRST,), first=""),
    "initial rows of a view": Source(
        "ON VIEW v SHOW_INITIAL_ROWS = TRUE", ("CREATE VIEW v AS SELECT * FROM t", FIRST), first=""
    ),
}


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    schema = fresh_schema(spark, "expectsource")
    run(spark, f"CREATE TABLE t (id INT NOT NULL, amount STRING) {TRACKED}")
    run(spark, "CREATE TABLE copy (id INT, amount INT)")
    yield schema
    run(spark, "USE default")


def rows(spark: SparkSession, query: str) -> Rows:
    return sorted(map(tuple, run(spark, query)), key=str)


def offset(spark: SparkSession, schema: str) -> Offset:
    """Where stream s stands, whichever source it has."""
    state = catalog_of(spark).find(spark, Name("spark_catalog", schema, "s"))
    assert state is not None
    return state.offset


@pytest.mark.every_case
@pytest.mark.parametrize("name", SOURCES)
def test_each_source(spark: SparkSession, schema: str, name: str) -> None:
    source = SOURCES[name]
    for statement in (*source.made, f"CREATE STREAM s {source.stream} {EXPECTATIONS}"):
        run(spark, statement)
    for statement in (source.first, *source.refresh) if source.first else ():
        run(spark, statement)
    quarantine = "SELECT id, amount FROM s_quarantine"
    first: Rows = [(3, "x"), (4, "-4"), (5, None)] if "materialized" not in name else [(3, "X"), (4, "-4"), (5, None)]
    run(spark, INSERT)
    assert (rows(spark, "SELECT * FROM copy"), rows(spark, quarantine)) == ([(1, 10), (2, 20)], first)
    for statement in (source.then, *source.refresh):
        run(spark, statement)
    run(spark, MERGE)
    assert rows(spark, "SELECT * FROM copy") == list(source.copy)
    assert rows(spark, quarantine) == sorted([*first, *source.quarantined], key=str)
    run(spark, "ALTER STREAM s ADD EXPECTATION known CHECK (id <> 50) ON VIOLATION FAIL")
    for statement in ("INSERT INTO t VALUES (50, '1'), (8, 'z')", *source.refresh):
        run(spark, statement)
    before = offset(spark, schema)
    for statement in (INSERT, MERGE):
        with pytest.raises(Exception, match=r"EXPECTATION_VIOLATED.*expectation known.*id = 50"):
            run(spark, statement)
    assert rows(spark, "SELECT * FROM copy") == list(source.copy)
    assert rows(spark, "SELECT * FROM s_quarantine WHERE id = 8") == []
    assert offset(spark, schema) == before


def test_batches(spark: SparkSession, schema: str) -> None:
    """The rows of a batch count as the change set has them, and each batch quarantines its own."""
    run(spark, f"CREATE STREAM s ON TABLE t {EXPECTATIONS}")
    for i in (10, 20, 30):
        run(spark, f"INSERT INTO t VALUES ({i}, '1'), ({i + 1}, 'x'), ({i + 2}, NULL)")
    seen = []
    batch = "MAX_BATCH_SIZE = 4"
    inserts, merges = (s.replace("FROM s", f"FROM s WITH ({batch})") for s in (INSERT, MERGE))
    for statement in (inserts, merges, f"SELECT id FROM s WITH (CONSUME = TRUE, {batch})"):
        run(spark, statement)
        quarantined = rows(spark, "SELECT DISTINCT id, __consumption FROM s_quarantine")
        seen.append(([r[0] for r in rows(spark, "SELECT id FROM copy")], [r[0] for r in quarantined]))
    assert seen == [([10], [11, 12]), ([10, 20], [11, 12, 21, 22]), ([10, 20], [11, 12, 21, 22, 31, 32])]
    assert run(spark, "SELECT * FROM s") == []


def test_a_history(spark: SparkSession, schema: str) -> None:
    """SCD type 2: the state of a row that gets bad ends, and begins again when the row is good."""
    run(spark, f"CREATE STREAM s ON TABLE t {EXPECTATIONS}")
    apply = "AUTO CDC INTO history FROM STREAM s KEYS (id) STORED AS SCD TYPE 2 WITH (CREATE_TARGET = TRUE)"
    states = "SELECT id, amount, __END_AT IS NULL FROM history"
    for change in (FIRST, THEN):
        run(spark, change)
        run(spark, apply)
    changed: Rows = [(1, "10", False), (2, "20", False), (2, "21", True), (3, "33", True)]
    assert rows(spark, states) == changed
    run(spark, "UPDATE t SET amount = '11' WHERE id = 1")
    run(spark, apply)
    assert rows(spark, states) == [(1, "10", False), (1, "11", True), *changed[1:]]
    run(spark, "ALTER STREAM s ADD EXPECTATION known CHECK (id <> 50) ON VIOLATION FAIL")
    run(spark, "INSERT INTO t VALUES (50, '1'), (8, 'z')")
    with pytest.raises(Exception, match=r"EXPECTATION_VIOLATED.*expectation known"):
        run(spark, apply)
    run(spark, "DELETE FROM t WHERE id = 50")
    run(spark, apply)
    assert rows(spark, states) == [(1, "10", False), (1, "11", True), *changed[1:]]
    quarantined = rows(spark, "SELECT id, amount FROM s_quarantine")
    assert quarantined == [(1, "bad"), (3, "x"), (4, "-4"), (4, "worse"), (5, None), (8, "z")]
