"""The catalog's snapshot, and a session of this process, against Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streamql.cli.shell import lookups
from streamql.cli.shell.completion.statements import complete
from streamql.cli.shell.snapshot import Relation, Snapshot, Want
from streamql.console.sql.embedded import EmbeddedSession
from streamql.console.sql.named_objects import use_statement
from streamql.times import now_ms


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    return f"look_{request.node.name}"


@pytest.fixture
def session(spark: SparkSession, database: str) -> Iterator[EmbeddedSession]:
    spark.sql(f"CREATE DATABASE {database}")
    made = EmbeddedSession(spark)
    made.sql(use_statement(f"spark_catalog.{database}"))
    made.sql("CREATE TABLE Orders (id INT, `a-b` INT)")
    made.sql("ALTER TABLE orders SET PROPERTIES ('change_tracking' = 'true')")
    made.sql("CREATE STREAM orders_st ON TABLE orders")
    made.sql("INSERT INTO orders VALUES (1, 2)")
    made.sql("CREATE VIEW seen AS SELECT id FROM orders")
    made.sql("CREATE TEMPORARY VIEW passing AS SELECT 1 AS one")
    yield made
    spark.catalog.dropTempView("passing")
    spark.sql("USE default")


def test_snapshot(session: EmbeddedSession, database: str) -> None:
    snapshot, streams = lookups.overview(session, Snapshot())
    assert snapshot.database == database
    assert {"default", database} <= set(snapshot.databases)
    assert {r.name.lower(): (r.type, r.is_temporary) for r in snapshot.relations[database]} == {
        "orders": ("table", False),
        "seen": ("view", False),
        "passing": ("view", True),
        "orders_st": ("stream", False),
    }
    assert [(s.name, s.status.stale) for s in streams] == [("orders_st", False)]
    assert streams[0].status.stale_after_ms is not None
    assert streams[0].status.stale_after_ms > now_ms()

    # what a completion lacks is looked up, until it lacks nothing
    text = "SELECT p.o, o.| FROM orders_st o, passing p"
    before, after = text.split("|")
    for want in complete(before, after, snapshot).wants:
        snapshot = lookups.look_up(session, want, snapshot)
    found = [c.text for c in complete(before, after, snapshot).candidates]
    assert found == ["__change_type", "__commit_version", "__commit_timestamp", "id", "`a-b`"]
    assert lookups.look_up(session, Want(database, "passing"), snapshot).columns[database, "passing"] == ["one"]

    # what is not there is known to be empty, and not asked for again
    snapshot = lookups.look_up(session, Want("nosuch"), snapshot)
    snapshot = lookups.look_up(session, Want(database, "nosuch"), snapshot)
    assert (snapshot.relations["nosuch"], snapshot.columns[database, "nosuch"]) == ((), ())


def test_transactions_are_seen(session: EmbeddedSession) -> None:
    assert not session.in_transaction()
    session.sql("BEGIN TRANSACTION")
    assert session.in_transaction()
    session.sql("ROLLBACK")
    assert not session.in_transaction()
    deadline = time.monotonic() + 60
    while session.stages() != (0, 0, 0):  # what Delta does behind a commit may still run
        assert time.monotonic() < deadline, session.stages()
        time.sleep(0.05)
    session.cancel()


def test_a_relation_is_found_by_its_name() -> None:
    relation = Relation("Orders", "table")
    snapshot = Snapshot("db", (), {"db": (relation,)})
    assert (
        snapshot.find(("orders",))
        == snapshot.find(("DB", "ORDERS"))
        == snapshot.find(("spark_catalog", "db", "orders"))
        == relation
    )
    assert snapshot.find(("other", "orders")) is None


def test_dynamic_tables(session: EmbeddedSession, database: str) -> None:
    """They are told apart from views, and the tables of their rows are left out."""
    session.sql("CREATE DYNAMIC TABLE Daily INITIALIZE = ON_SCHEDULE AS SELECT id FROM orders")
    session.sql("CREATE MATERIALIZED VIEW m BUILD DEFERRED AS SELECT id FROM orders")
    snapshot, _ = lookups.overview(session, Snapshot())
    types = {r.name.lower(): r.type for r in snapshot.relations[database]}
    assert types == {
        "orders": "table",
        "seen": "view",
        "passing": "view",
        "orders_st": "stream",
        "daily": "dynamic table",
        "m": "materialized view",
    }
    session.sql("DROP MATERIALIZED VIEW m")
    session.sql("DROP DYNAMIC TABLE daily")
