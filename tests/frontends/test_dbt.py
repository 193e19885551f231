"""examples/dbt: dbt runs its models against `streamql server`, by Thrift. Each test has a schema of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.frontends.dbt_runner import DbtRunner
from tests.frontends.dbt_shop import ORDERS, ROWS, Shop, copied_example, serving
from tests.frontends.support import Client, eventually

pytestmark = pytest.mark.spark

RUN = ("run", "--exclude", "orders_by_item")
"""A run without the dynamic table, which takes half of the time of a small run."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server over a new data directory."""
    directory = tmp_path_factory.mktemp("dbt")
    log = directory / "log"
    with serving(directory / "lake", log) as (_, port):
        yield port
    # dbt has a connection for each model. One that closes must not open the metastore anew, with Spark's settings for Derby: that takes
    # it away from the others, which then may not find a schema.
    assert "derby" not in log.read_text().lower()


@pytest.fixture(scope="module")
def runner() -> Iterator[DbtRunner]:
    """What runs dbt."""
    with DbtRunner() as made:
        yield made


@pytest.fixture(scope="module")
def project(runner: DbtRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, with its package installed."""
    return copied_example(runner, tmp_path_factory.mktemp("project"))


@pytest.fixture
def shop(port: int, runner: DbtRunner, project: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    schema = request.node.name.removeprefix("test_")
    with Client(port) as client:
        client.rows(f"CREATE SCHEMA {schema}")
        client.rows(f"USE {schema}")
        client.rows(ORDERS)
        yield Shop(port, runner, client, schema, tmp_path, project)


def test_each_run_takes_what_changed(shop: Shop) -> None:
    shop.succeeds("run")
    assert shop.is_equal()
    assert shop.audit() == {"INSERT": ROWS}
    assert shop.left() == (0, 0)

    shop.rows("UPDATE orders SET amount = amount + 1 WHERE id < 20")
    shop.rows("DELETE FROM orders WHERE id BETWEEN 100 AND 109")
    shop.rows("INSERT INTO orders VALUES (9000, 'new', 5)")
    shop.rows("DELETE FROM orders WHERE id = 200")
    shop.rows("INSERT INTO orders VALUES (200, 'the same key again', 6)")
    shop.rows("UPDATE orders SET id = 9100 WHERE id = 300")
    shop.succeeds("show", "--select", "orders_current")
    shop.succeeds("compile")
    shop.succeeds("test")
    shop.succeeds(*RUN, "--empty")
    assert shop.left() == (55, 55), "these only read"
    assert not shop.is_equal()

    assert "WARN=0 ERROR=0 SKIP=0" in shop.succeeds("build")
    assert shop.is_equal()
    expected = {"INSERT": ROWS + 2, "UPDATE_BEFORE": 21, "UPDATE_AFTER": 21, "DELETE": 11}
    assert shop.audit() == expected
    assert shop.rows("SELECT change_type, item FROM order_changes WHERE id = 200 ORDER BY commit_version") == [
        ("INSERT", "item 0"),
        ("DELETE", "item 0"),
        ("INSERT", "the same key again"),
    ]
    assert shop.left() == (0, 0)
    assert shop.rows("SELECT orders, amount FROM orders_by_item WHERE item = 'the same key again'") == [(1, 6)]

    tables = ("orders", "orders_current", "order_changes")
    versions = shop.versions(*tables)
    shop.succeeds(*RUN)
    assert shop.versions(*tables) == versions, "nothing new: nothing written, and no description is stored again"
    assert shop.outcomes()["orders_stream"] == "UNCHANGED"
    assert shop.audit() == expected
    assert shop.consumptions("orders_stream") == [("CONSUMED", "MERGE", ROWS), ("CONSUMED", "MERGE", 34)]
    assert shop.consumptions("orders_log_stream") == [("CONSUMED", "INSERT", ROWS), ("CONSUMED", "INSERT", 55)]
    by_model = 'SELECT DISTINCT regexp_extract(statement, \'"node_id": "([^"]*)"\') FROM streamql.consumptions'
    assert shop.rows(f"{by_model} WHERE stream = '{shop.schema}.orders_stream'") == [("model.shop.orders_current",)]
    described = dict(row[::2] for row in shop.rows("DESCRIBE orders_by_item"))
    assert described["item"] == "What was ordered."


def test_a_run_that_fails_moves_nothing(shop: Shop) -> None:
    shop.rows("INSERT INTO orders VALUES (9001, 'bad', -1)")
    assert "order 9001 has a negative amount" in shop.fails(*RUN)
    assert shop.left() == (ROWS + 1, 0), "the other model does not suffer"

    shop.rows("UPDATE orders SET amount = 1 WHERE id = 9001")
    shop.succeeds(*RUN)
    assert shop.is_equal()
    assert shop.left() == (0, 0)

    shop.rows("INSERT INTO orders VALUES (9002, 'bad', -2), (9003, 'good', 3)")
    shop.rows("DELETE FROM orders WHERE id = 3")
    replica = shop.rows("SELECT * FROM orders_current ORDER BY id")
    assert "order 9002 has a negative amount" in shop.fails(*RUN)
    assert shop.left() == (3, 0)
    assert shop.rows("SELECT * FROM orders_current ORDER BY id") == replica

    shop.rows("UPDATE orders SET amount = 2 WHERE id = 9002")
    shop.succeeds(*RUN)
    assert shop.is_equal()
    assert shop.left() == (0, 0)
    assert shop.audit() == {"INSERT": ROWS + 3, "UPDATE_BEFORE": 2, "UPDATE_AFTER": 2, "DELETE": 1}
    assert shop.consumptions("orders_stream") == [
        ("FAILED", "MERGE", None),
        ("CONSUMED", "MERGE", ROWS + 1),  # into the empty table that the first run has left
        ("FAILED", "MERGE", None),
        ("CONSUMED", "MERGE", 3),
    ]
    assert [outcome for outcome, *_ in shop.consumptions("orders_log_stream")] == ["CONSUMED"] * 4


def test_full_refresh_starts_the_stream_again(shop: Shop) -> None:
    consumers = ("run", "--select", "orders_current", "order_changes")
    shop.succeeds(*RUN)
    shop.rows("DELETE FROM orders WHERE id = 1")
    shop.succeeds(*RUN, "--full-refresh")
    assert shop.is_equal()
    assert shop.consumptions("orders_stream") == [("CONSUMED", "MERGE", ROWS), ("CONSUMED", "MERGE", ROWS - 1)]
    assert shop.audit() == {"INSERT": ROWS, "DELETE": 1}, "a log is not built anew: what is past cannot be had again"

    shop.rows("DROP TABLE orders_current")
    shop.rows("DELETE FROM orders WHERE id = 2")
    assert "orders_current does not exist, but stream" in shop.fails(*consumers)
    assert shop.left()[0] == 1
    shop.succeeds("run", "--full-refresh", "--select", "orders_current")
    assert shop.is_equal()

    # Streams that show all rows again, over tables that have them: these would be there twice, or never be deleted.
    shop.rows("DELETE FROM orders WHERE id = 3")
    shop.rows("DROP STREAM orders_stream")
    shop.rows("DROP STREAM orders_log_stream")
    assert "To create it: dbt run --select orders_stream" in shop.fails(*consumers)
    said = shop.fails(*RUN)
    assert "orders_stream starts with all rows, but" in said
    assert "orders_log_stream starts with all rows, but" in said
    assert shop.left() == (ROWS - 3, ROWS - 3)

    # The log's stream skips what it did not see: another stream, so the run says so until the user says that nothing is missing.
    shop.rows("ALTER STREAM orders_log_stream SET OFFSET TO LATEST")
    said = shop.fails(*RUN, "--full-refresh")
    assert "is not the one that" in said
    assert shop.is_equal()
    (statement,) = [
        line.split("nothing is missing: ")[1] for line in said.splitlines() if "nothing is missing" in line
    ][:1]
    shop.rows(statement)
    shop.rows("INSERT INTO orders VALUES (9004, 'new', 4)")
    shop.succeeds(*consumers)
    assert shop.is_equal()
    assert shop.audit() == {"INSERT": ROWS + 1, "DELETE": 2}


def test_two_runs_at_once_take_each_change_once(shop: Shop, tmp_path: Path) -> None:
    """Two first runs, of which Delta Lake may refuse one: both create the tables. Then two runs with changes."""
    with DbtRunner() as second, ThreadPoolExecutor(2) as threads:
        other = replace(shop, runner=second, directory=tmp_path / "other")
        other.directory.mkdir()
        codes = [run.result().returncode for run in [threads.submit(s.dbt, *RUN) for s in (shop, other)]]
        assert 0 in codes
        if any(codes):
            shop.succeeds(*RUN)
        assert shop.is_equal()
        assert shop.left() == (0, 0)
        assert shop.audit() == {"INSERT": ROWS}

        shop.rows("UPDATE orders SET amount = amount + 1 WHERE id < 20")
        for run in [threads.submit(s.succeeds, *RUN) for s in (shop, other)]:
            run.result()
    assert shop.is_equal()
    assert shop.left() == (0, 0)
    assert shop.audit() == {"INSERT": ROWS, "UPDATE_BEFORE": 20, "UPDATE_AFTER": 20}


def killed_in_a_run(shop: Shop, server: subprocess.Popen[bytes]) -> None:
    """Kills the server while a statement of dbt holds a stream."""
    out = shop.directory / "out"
    out.unlink(missing_ok=True)
    begun = "START sql stream_consumer model killed.orders_current"
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(shop.dbt, *RUN)
        eventually(lambda: (out.exists() and begun in out.read_text()) or run.done())
        eventually(lambda: run.done() or shop.facts("STREAM orders_stream")["consuming_now"])
        shop.client.close()
        server.kill()
        assert run.result().returncode == 1


def test_a_server_that_is_killed_in_a_run(runner: DbtRunner, project: Path, tmp_path: Path) -> None:
    """The first run is killed while it loads the rows, the second while it takes changes. The run after it is right each time."""
    expected = {"INSERT": ROWS}
    for number in range(3):
        with serving(tmp_path / "lake", tmp_path / f"log-{number}") as (server, port):
            client = Client(port)
            shop = Shop(port, runner, client, "killed", tmp_path, project)
            client.rows("CREATE SCHEMA IF NOT EXISTS killed")
            client.rows("USE killed")
            if number == 0:
                client.rows(ORDERS)
            else:
                shop.succeeds(*RUN)
                assert shop.is_equal()
                assert shop.left() == (0, 0)
                assert shop.audit() == expected
            if number == 1:
                client.rows("UPDATE orders SET amount = amount + 1 WHERE id < 20")
                expected |= {"UPDATE_BEFORE": 20, "UPDATE_AFTER": 20}
            if number < 2:
                killed_in_a_run(shop, server)
            else:
                client.close()
