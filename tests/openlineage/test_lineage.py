"""Events of statements, refreshes and tasks, as a receiver gets them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.features.openlineage import observer
from streamql.features.openlineage.sender import Sender
from tests.consume.support import fresh_schema, killed, tracked_table
from tests.frontends.support import environment, streamql
from tests.openlineage.receiver import Receiver, columns, dataset, problems


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver that the environment names."""
    made = Receiver()
    monkeypatch.setenv("OPENLINEAGE_URL", made.url)
    monkeypatch.setattr(observer, "_SENDER", Sender())
    yield made
    made.close()
    assert [p for event in made.events for p in problems(event)] == []


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> SparkSession:
    """A schema with a table of orders, prices, and a target."""
    spark.sql("CREATE SCHEMA lineage")
    spark.sql("USE lineage")
    spark.sql("CREATE TABLE orders (id INT, item STRING, amount INT) TBLPROPERTIES ('change_tracking' = 'true')")
    spark.sql("CREATE TABLE prices (item STRING, price DOUBLE)")
    spark.sql("CREATE TABLE totals (id BIGINT, what STRING, total DOUBLE)")
    spark.sql("INSERT INTO prices VALUES ('item 1', 2.5)")
    return spark


def test_a_statement_that_consumes(shop: SparkSession, receiver: Receiver) -> None:
    shop.sql("CREATE STREAM s ON TABLE orders")
    shop.sql("INSERT INTO orders SELECT id, 'item ' || id, id FROM range(5)")
    shop.sql("UPDATE orders SET amount = 9 WHERE id = 1")
    shop.sql(
        "INSERT INTO totals SELECT s.id, upper(s.item), s.amount * p.price FROM s LEFT JOIN prices p ON s.item = p.item "
        "WHERE __change_type = 'INSERT'"
    )
    ((start, complete),) = receiver.ended("lineage.totals.insert_from.lineage.s")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert dataset(complete, "inputs", "orders")["facets"]["version"]["datasetVersion"] == "2"
    stream = dataset(complete, "inputs", "lineage.s")
    assert stream["namespace"] == "streamql"
    facet = stream["facets"]["streamql_stream"]
    assert (facet["after"], facet["through"], facet["changes"]) == ("0", "2", {"INSERT": 5})
    assert stream["inputFacets"]["inputStatistics"]["rowCount"] == 5
    output = dataset(complete, "outputs", "totals")
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 5
    assert output["facets"]["version"]["datasetVersion"] == "1"
    assert output["facets"]["symlinks"]["identifiers"] == [
        {"namespace": "streamql", "name": "lineage.totals", "type": "TABLE"}
    ]
    assert columns(complete) == {
        "id": {("orders", "id", "IDENTITY")},
        "what": {("orders", "item", "TRANSFORMATION")},
        "total": {("orders", "amount", "TRANSFORMATION"), ("prices", "price", "TRANSFORMATION")},
    }
    assert columns(start) == columns(complete)
    ledger = shop.sql("SELECT consumption_id FROM streamql.consumptions WHERE stream = 'lineage.s'").collect()
    assert [r[0] for r in ledger] == [complete["run"]["facets"]["streamql_consumption"]["consumption"]]


def test_a_merge_that_fails_and_then_succeeds(shop: SparkSession, receiver: Receiver) -> None:
    shop.sql("CREATE STREAM m ON TABLE orders SHOW_INITIAL_ROWS = TRUE")
    merge = (
        "MERGE INTO totals t USING m ON t.id = m.id WHEN MATCHED THEN UPDATE SET total = {} "
        "WHEN NOT MATCHED THEN INSERT (id, what) VALUES (m.id, m.item)"
    )
    with pytest.raises(Exception, match="no such"):
        shop.sql(merge.format("raise_error('no such')"))
    shop.sql(merge.format("m.amount"))
    first, second = receiver.ended("lineage.totals.merge_from.lineage.m", 2)
    assert [e["eventType"] for e in (*first, *second)] == ["START", "FAIL", "START", "COMPLETE"]
    assert "no such" in first[-1]["run"]["facets"]["errorMessage"]["message"]
    assert columns(second[-1]) == {
        "id": {("orders", "id", "IDENTITY")},
        "what": {("orders", "item", "IDENTITY")},
        "total": {("orders", "amount", "IDENTITY")},
    }


def test_views_dynamic_tables_histories_transactions_and_tasks(shop: SparkSession, receiver: Receiver) -> None:
    shop.sql("CREATE VIEW labels AS SELECT id, item || '!' AS label FROM orders WHERE amount > 0")
    for name in ("v ON VIEW labels", "h ON TABLE orders", "x ON TABLE orders", "k ON TABLE orders"):
        shop.sql(f"CREATE STREAM {name}")
    shop.sql("CREATE DYNAMIC TABLE d AS SELECT item, sum(amount) AS total FROM orders WHERE id > 0 GROUP BY item")
    shop.sql("ALTER STREAM h ADD EXPECTATION priced CHECK (amount > 0) ON VIOLATION QUARANTINE INTO unpriced")
    shop.sql("INSERT INTO orders VALUES (50, 'item 50', 3), (51, 'item 51', -1)")
    shop.sql("CREATE TABLE labelled AS SELECT id, label FROM v")
    shop.sql("REFRESH DYNAMIC TABLE d")
    shop.sql("CREATE TABLE history (id INT, item STRING, amount INT, __START_AT TIMESTAMP, __END_AT TIMESTAMP)")
    shop.sql("AUTO CDC INTO history FROM h KEYS (id) STORED AS SCD TYPE 2")
    shop.sql("BEGIN TRANSACTION")
    for _ in range(2):
        shop.sql("INSERT INTO totals (id) SELECT id FROM x")
    shop.sql("COMMIT")
    shop.sql("CREATE TASK load AS INSERT INTO totals (id) SELECT id FROM k")
    shop.sql("EXECUTE TASK load")

    (run,) = receiver.ended("lineage.labelled.ctas_from.lineage.v")
    assert columns(run[-1]) == {"id": {("orders", "id", "IDENTITY")}, "label": {("orders", "item", "TRANSFORMATION")}}
    runs = receiver.ended("lineage.d.refresh", 2)
    assert [[e["eventType"] for e in run] for run in runs] == [["START", "COMPLETE"]] * 2
    refresh = runs[-1][-1]
    assert columns(refresh) == {
        "item": {("orders", "item", "IDENTITY")},
        "total": {("orders", "amount", "AGGREGATION")},
    }
    assert [d["facets"]["symlinks"]["identifiers"][0]["name"] for d in refresh["outputs"]] == ["lineage.d"]
    assert {d["name"].rsplit("/", 1)[-1] for d in refresh["inputs"]} == {"orders"}
    (output,) = refresh["outputs"]
    assert [f["name"] for f in output["facets"]["schema"]["fields"]] == ["item", "total"]
    assert refresh["job"]["facets"]["sql"]["query"].startswith("CREATE DYNAMIC TABLE d ")
    assert refresh["job"]["facets"]["jobType"]["jobType"] == "REFRESH"
    (run,) = receiver.ended("lineage.history.merge_from.lineage.h")
    assert {c: o for c, o in columns(run[-1]).items() if not c.startswith("__")} == {
        c: {("orders", c, "IDENTITY")} for c in ("id", "item", "amount")
    }
    unpriced = dataset(run[-1], "outputs", "unpriced")
    assert unpriced["facets"]["symlinks"]["identifiers"][0]["name"] == "lineage.unpriced"
    assert unpriced["outputFacets"]["outputStatistics"]["rowCount"] == 1
    runs = receiver.ended("lineage.totals.insert_from.lineage.x", 2)
    assert [[e["eventType"] for e in run] for run in runs] == [["START", "COMPLETE"]] * 2
    (task,) = receiver.ended("lineage.load")
    (run,) = receiver.ended("lineage.totals.insert_from.lineage.k")
    for event in run:
        parent = event["run"]["facets"]["parent"]
        assert (parent["run"]["runId"], parent["job"]["name"]) == (task[0]["run"]["runId"], "lineage.load")


def test_a_receiver_that_is_down_fails_and_loses_nothing(shop: SparkSession, receiver: Receiver) -> None:
    shop.sql("CREATE STREAM down ON TABLE orders")
    shop.sql("INSERT INTO orders VALUES (60, 'item 60', 3)")
    receiver.is_down = True
    shop.sql("INSERT INTO totals (id) SELECT id FROM down")
    assert shop.table("down").count() == 0
    receiver.is_down = False
    ((start, complete),) = receiver.ended("lineage.totals.insert_from.lineage.down")
    assert start["eventTime"] < complete["eventTime"]


@pytest.mark.parametrize(("point", "end"), [("after:execute", "COMPLETE"), ("before:execute", "FAIL")])
def test_the_run_of_a_killed_process_is_ended_by_the_next(
    spark: SparkSession, receiver: Receiver, point: str, end: str
) -> None:
    schema = fresh_schema(spark, "lineage_kill")
    tracked_table(spark, 50)
    spark.sql("CREATE TABLE target (id BIGINT)")
    insert = f"INSERT INTO {schema}.target SELECT id FROM {schema}.s"
    killed(spark, point, insert)
    spark.sql("INSERT INTO t VALUES (1000, 1)")
    spark.sql(insert)
    first, second = receiver.ended(f"{schema}.target.insert_from.{schema}.s", 2)
    if end == "COMPLETE":  # the statement took long enough for START to be sent
        assert first[0]["eventType"] == "START"
    assert [run[-1]["eventType"] for run in (first, second)] == [end, "COMPLETE"]
    assert sum(event["eventType"] != "START" for event in first + second) == 2
    rows = [
        dataset(run[-1], "outputs", "target")["outputFacets"]["outputStatistics"]["rowCount"]
        for run in (first, second)
        if run[-1]["eventType"] == "COMPLETE"
    ]
    assert rows == ([50, 1] if end == "COMPLETE" else [51])


SCRIPT = (
    "CREATE TABLE t (id INT) TBLPROPERTIES ('change_tracking' = 'true'); CREATE TABLE u (id INT); CREATE STREAM s ON TABLE t; "
    "INSERT INTO t VALUES (1); INSERT INTO u SELECT id FROM s;"
)


@pytest.mark.parametrize("front_end", [("-e",), ("spark-sql", "-e")], ids=["streamql", "spark-sql"])
@pytest.mark.spark
def test_a_process_sends_what_it_has_before_it_ends(
    receiver: Receiver, tmp_path: Path, front_end: tuple[str, ...]
) -> None:
    """spark-sql is a JVM with a sidecar."""
    argv = streamql(tmp_path / "lake", *front_end, SCRIPT)
    done = subprocess.run(
        argv,
        env={**environment(), "OPENLINEAGE_URL": receiver.url},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ((start, complete),) = receiver.ended("default.u.insert_from.default.s", seconds=5)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
