"""The package of integrations/dbt: what its materializations do when a model changes, its tests, and the session method."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frontends.dbt_runner import DbtRunner
from tests.frontends.dbt_shop import ORDERS, Shop, serving, written
from tests.frontends.support import Client, finished
from tests.small import INTERPRETED, SHORT_LIVED

pytestmark = pytest.mark.spark

SOURCES = """
sources:
  - name: shop
    schema: "{{ target.schema }}"
    tables: [{name: orders, description: Orders.}]
models:
  - name: states_stream
    description: What order_states has not seen.
    data_tests:
      - streamql.stream_not_stale: {arguments: {hours: 1}}
      - streamql.stream_lag_below: {arguments: {seconds: 3600}}
      - streamql.no_violations
      - streamql.no_quarantined_rows: {arguments: {expectation: positive}}
  - name: totals
    columns: [{name: item, description: The item.}]
    data_tests:
      - streamql.dynamic_table_lag_below: {arguments: {seconds: 3600}}
      - streamql.dynamic_table_refreshed
      - streamql.dynamic_table_equals_query
"""

MODELS = {
    "schema.yml": SOURCES,
    "states_stream.sql": """
{{ config(materialized='table_stream', show_initial_rows=true,
   expectations=[{'name': 'positive', 'check': 'amount >= 0', 'on_violation': 'quarantine'}]) }}
select * from {{ source('shop', 'orders') }}
""",
    "order_states.sql": """
{{ config(materialized='stream_consumer', strategy='auto_cdc', unique_key='id', scd_type=2,
   track_history_except_column_list=['item']) }}
select * from {{ ref('states_stream') }} where id < 1000 -- a comment
""",
    # Each run replaces this table. A stream by key on it shows the rows that differ.
    "items.sql": """
{{ config(materialized='table', file_format='delta') }}
select item, sum(amount) as amount from {{ source('shop', 'orders') }} group by item
""",
    "items_stream.sql": """
{{ config(materialized='table_stream', show_initial_rows=true, primary_key='item') }}
select * from {{ ref('items') }};
""",
    "item_changes.sql": """
{{ config(materialized='stream_consumer', strategy='append') }}
select __change_type as change_type, item, amount from {{ ref('items_stream') }}
""",
    "totals.sql": """
{{ config(materialized='dynamic_table', target_lag='1 hour', persist_docs={'columns': true}) }}
select item, count(*) as orders from {{ source('shop', 'orders') }} group by item
""",
}

IN_SESSION = """
import json, sys
import streamql
from dbt.cli.main import dbtRunner

spark = streamql.session(sys.argv[1], conf=json.loads(sys.argv[2]))
spark.sql("CREATE SCHEMA shop")
spark.sql("USE shop")
spark.sql("CREATE TABLE orders AS SELECT id, 'tea' AS item, CAST(id AS INT) AS amount FROM range(100)")
for statement in ("DELETE FROM orders WHERE id < 10", "SELECT 1"):
    done = dbtRunner().invoke(["run", "--select", "states_stream+"])
    assert done.success, done.exception or [r.message for r in done.result]
    print("states", *spark.sql("SELECT count(*), count_if(__END_AT IS NULL) FROM order_states").first())
    spark.sql(statement)
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A schema over the project of this file, which is built once."""
    directory = tmp_path_factory.mktemp("package")
    with DbtRunner() as runner, serving(directory / "lake", directory / "log") as (_, port), Client(port) as client:
        client.rows("CREATE SCHEMA shop")
        client.rows("USE shop")
        client.rows(ORDERS)
        made = Shop(port, runner, client, "shop", directory, written(runner, directory, MODELS))
        made.succeeds("build")
        yield made


def test_a_second_build_changes_nothing(shop: Shop) -> None:
    assert shop.value("SELECT count(*) FROM order_states WHERE __END_AT IS NULL") == 1000
    shop.succeeds("build", "--exclude", "items")
    outcomes = shop.outcomes()
    assert [outcomes[m] for m in ("states_stream", "items_stream", "totals")] == ["UNCHANGED"] * 3
    assert shop.consumptions("states_stream") == [("CONSUMED", "MERGE", 1000)]

    amount = shop.value("SELECT amount FROM items WHERE item = 'item 1'")
    shop.rows("DELETE FROM orders WHERE id = 1")
    shop.rows("UPDATE orders SET item = 'tea' WHERE id = 2")
    shop.succeeds("run")
    assert shop.rows("SELECT * FROM item_changes WHERE item IN ('item 1', 'tea') ORDER BY ALL") == [
        ("INSERT", "item 1", amount),
        ("INSERT", "tea", 2),
        ("UPDATE_AFTER", "item 1", amount - 1),
        ("UPDATE_BEFORE", "item 1", amount),
    ]
    # The history of order 1 has ended. The item begins no state.
    assert shop.rows("SELECT count(*), count_if(__END_AT IS NULL) FROM order_states") == [(1000, 999)]


def test_descriptions_are_in_the_documentation(shop: Shop) -> None:
    shop.rows("INSERT INTO orders VALUES (5000, 'salt', 1)")
    shop.succeeds("docs", "generate")
    manifest = json.loads((shop.directory / "target" / "manifest.json").read_text())
    catalog = json.loads((shop.directory / "target" / "catalog.json").read_text())
    stream = manifest["nodes"]["model.shop.states_stream"]
    assert stream["description"] == "What order_states has not seen."
    assert stream["depends_on"]["nodes"] == ["source.shop.shop.orders"]
    assert {"item", "orders"} == set(catalog["nodes"]["model.shop.totals"]["columns"])
    assert shop.value("SELECT count(*) FROM states_stream") == 1
    assert ("item", "string", "The item.") in shop.rows("DESCRIBE totals")


def test_a_stream_keeps_its_offset(shop: Shop) -> None:
    before = shop.facts("STREAM states_stream")
    shop.edit("states_stream", "show_initial_rows=true", "comment='for the history', show_initial_rows=true")
    shop.edit("states_stream", "'check': 'amount >= 0'", "'check': 'amount > -1'")
    shop.succeeds("run", "--select", "states_stream", "--full-refresh")
    assert shop.outcomes()["states_stream"] == "ALTERED"
    after = shop.facts("STREAM states_stream")
    assert after["comment"] == "for the history"
    assert after["expectation positive"].startswith("CHECK (amount > -1) ON VIOLATION QUARANTINE INTO")
    kept = ("stream_id", "offset_version", "has_data")
    assert [after[k] for k in kept] == [before[k] for k in kept]

    shop.edit("states_stream", "comment=", "mode='append_only', comment=")
    said = shop.fails("run", "--select", "states_stream")
    assert "it is STANDARD, and the model APPEND_ONLY" in said
    statement = said.split("keep its offset: ")[1].split(". To start")[0]
    assert "at (stream => 'shop.states_stream') append_only = true" in statement
    shop.rows(statement)
    # It is another stream, which continues at the offset of the one before.
    shop.succeeds("run", "--select", "states_stream", "order_states")
    assert shop.value("SELECT count(*) FROM order_states WHERE id = 5000") == 0
    assert shop.facts("STREAM states_stream")["has_data"] == "false"


def test_a_stream_that_cannot_be_read_is_built_anew(shop: Shop) -> None:
    shop.rows("DROP TABLE orders")
    shop.rows(ORDERS)
    shop.succeeds("run", "--select", "states_stream")
    said = shop.fails("run", "--select", "order_states")
    assert "cannot be read: STREAM_SOURCE_" in said
    assert "rebuild_on_full_refresh" in said
    shop.edit("order_states", "scd_type=2", "scd_type=2, rebuild_on_full_refresh=true")
    shop.succeeds("run", "--full-refresh", "--select", "order_states")
    assert shop.rows("SELECT count(*), count_if(__END_AT IS NULL) FROM order_states") == [(1000, 1000)]


def test_rows_in_quarantine_fail_a_test(shop: Shop) -> None:
    shop.rows("INSERT INTO orders VALUES (1, 'bad', -1)")
    said = shop.fails("build", "--select", "states_stream", "order_states")
    assert "streamql_no_violations_states_stream" in said
    assert "ERROR=0" not in said
    said = shop.fails("test", "--select", "states_stream", "--store-failures")
    assert "it would consume the stream" in said
    shop.succeeds("run", "--select", "order_states")
    assert "FAIL 1 streamql_no_quarantined_rows" in shop.fails("test", "--select", "states_stream")


def test_a_dynamic_table_is_altered_or_replaced(shop: Shop) -> None:
    shop.rows("CREATE STREAM totals_stream ON DYNAMIC TABLE totals")
    shop.succeeds("run", "--select", "totals", "--full-refresh")
    assert shop.facts("STREAM totals_stream")["invalid_reason"] is None, "--full-refresh keeps streams on the table"
    shop.edit("totals", "target_lag='1 hour'", "target_lag='90 minutes', refresh_mode='full', comment='by item'")
    shop.succeeds("run", "--select", "totals")
    assert shop.outcomes()["totals"] == "ALTERED"
    facts = shop.facts("DYNAMIC TABLE totals")
    assert [facts[f] for f in ("target_lag", "refresh_mode", "comment")] == ["90 minutes", "FULL", "by item"]

    shop.edit("totals", "count(*)", "count(id)")
    shop.edit("totals", "comment=", "on_configuration_change='fail', comment=")
    assert "totals differs from its model: definition" in shop.fails("run", "--select", "totals")
    shop.edit("totals", "on_configuration_change='fail'", "on_configuration_change='apply'")
    assert "Streams on it raise STREAM_SOURCE_REPLACED from now on: shop.totals_stream" in shop.succeeds(
        "run", "--select", "totals"
    )
    assert shop.facts("DYNAMIC TABLE totals")["query"].startswith("select item, count(id)")
    shop.succeeds("run", "--select", "totals")
    assert shop.outcomes()["totals"] == "UNCHANGED"


def test_the_session_method(tmp_path: Path) -> None:
    """dbt runs in the process of the Spark session, on its own threads."""
    with DbtRunner() as runner:
        project = written(runner, tmp_path, MODELS)
    (project / "profiles.yml").write_text(
        "streamql:\n  target: dev\n  outputs:\n    dev: {type: spark, method: session, host: NA, schema: shop, threads: 2}\n"
    )
    script = tmp_path / "build.py"
    script.write_text(IN_SESSION)
    conf = json.dumps({"spark.master": "local[2]", **SHORT_LIVED, **dict(INTERPRETED)})
    done = finished([sys.executable, str(script), str(tmp_path / "lake"), conf], cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("states")] == [
        "states 100 100",
        "states 100 90",
    ]
