"""examples/dbt: dbt runs its models against `streamql server`, by Thrift. Each test has a schema of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.frontends.dbt_runner import DbtRunner
from tests.frontends.support import ROOT, Client, running, said, streamql

pytestmark = pytest.mark.spark

PROJECT = ROOT / "examples" / "dbt"
ROWS = 4_000


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server over a new data directory."""
    directory = tmp_path_factory.mktemp("dbt")
    log = directory / "log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMQL_LOG_LEVEL", "warn")
        with running(streamql(directory / "lake", "server", "--port", "0"), log) as process:
            yield int(said(process, log, r"ready: jdbc:hive2://127\.0\.0\.1:(\d+)\n")[1])
    # dbt has a connection for each model. One that closes must not open the metastore anew, with Spark's settings for Derby: that takes
    # it away from the others, which then may not find a schema.
    assert "derby" not in log.read_text().lower()


@pytest.fixture(scope="module")
def runner() -> Iterator[DbtRunner]:
    """What runs dbt."""
    with DbtRunner() as made:
        yield made


@dataclass
class Shop:
    """A schema with the table `orders`, a client in it, and dbt over it."""

    port: int
    runner: DbtRunner
    client: Client
    schema: str
    directory: Path

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.client.rows(sql)

    def dbt(self, *argv: str) -> subprocess.CompletedProcess[str]:
        variables = {
            "STREAMQL_PORT": str(self.port),
            "STREAMQL_SCHEMA": self.schema,
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DBT_PROJECT_DIR": str(PROJECT),
            "DBT_PROFILES_DIR": str(PROJECT),
            "DBT_TARGET_PATH": str(self.directory / "target"),
            "DBT_LOG_PATH": str(self.directory / "logs"),
            "DBT_USE_COLORS": "false",
        }
        return self.runner.run(list(argv), variables, self.directory)

    def succeeds(self, *argv: str) -> str:
        done = self.dbt(*argv)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, *argv: str) -> str:
        done = self.dbt(*argv)
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stdout

    def is_equal(self) -> bool:
        """Whether the replica is."""
        missing = "SELECT * FROM orders EXCEPT ALL SELECT * FROM orders_current"
        too_many = "SELECT * FROM orders_current EXCEPT ALL SELECT * FROM orders"
        return self.rows(missing) == self.rows(too_many) == []

    def audit(self) -> dict[str, int]:
        """How many rows of each change type the audit log has."""
        return dict(self.rows("SELECT change_type, count(*) FROM order_changes GROUP BY change_type"))

    def left(self) -> tuple[int, int]:
        """How many changes the two streams show."""
        (left,) = self.rows(
            "SELECT (SELECT count(*) FROM orders_stream), (SELECT count(*) FROM orders_log_stream)",
        )
        return left[0], left[1]

    def consumptions(self, stream: str) -> list[tuple[Any, ...]]:
        """Outcome, operation and rows written, of each consumption."""
        return self.rows(
            "SELECT outcome, operation, rows_written FROM streamql.consumptions "
            f"WHERE stream = '{self.schema}.{stream}' ORDER BY ended_at"
        )

    def versions(self) -> tuple[int, int]:
        """The latest versions of the two tables that consume."""
        tables = ("orders_current", "order_changes")
        current, changes = (self.rows(f"DESCRIBE HISTORY {t} LIMIT 1")[0][0] for t in tables)
        return current, changes


@pytest.fixture
def shop(port: int, runner: DbtRunner, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    schema = request.node.name.removeprefix("test_")
    with Client(port) as client:
        client.rows(f"CREATE SCHEMA {schema}")
        client.rows(f"USE {schema}")
        client.rows(
            "CREATE TABLE orders AS SELECT id, concat('item ', id % 10) AS item, CAST(id % 100 AS INT) AS amount "
            f"FROM range({ROWS})"
        )
        yield Shop(port, runner, client, schema, tmp_path)


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
    assert shop.left() == (55, 55), "these only read"
    assert not shop.is_equal()

    assert "PASS=12 WARN=0 ERROR=0" in shop.succeeds("build")  # two hooks, three models, seven tests
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

    versions = shop.versions()
    shop.succeeds("run")
    assert shop.versions() == versions, "nothing new: nothing written"
    assert shop.audit() == expected
    assert shop.consumptions("orders_stream") == [("CONSUMED", "RTAS", ROWS), ("CONSUMED", "MERGE", 34)]
    assert shop.consumptions("orders_log_stream") == [("CONSUMED", "RTAS", ROWS), ("CONSUMED", "INSERT", 55)]
    by_model = 'SELECT DISTINCT regexp_extract(statement, \'"node_id": "([^"]*)"\') FROM streamql.consumptions'
    assert shop.rows(f"{by_model} WHERE stream = '{shop.schema}.orders_stream'") == [("model.shop.orders_current",)]


def test_a_run_that_fails_moves_nothing(shop: Shop) -> None:
    shop.rows("INSERT INTO orders VALUES (9001, 'bad', -1)")
    assert "order 9001 has a negative amount" in shop.fails("run")
    assert shop.left() == (ROWS + 1, 0), "the other model does not suffer"

    shop.rows("UPDATE orders SET amount = 1 WHERE id = 9001")
    shop.succeeds("run")
    assert shop.is_equal()
    assert shop.left() == (0, 0)

    shop.rows("INSERT INTO orders VALUES (9002, 'bad', -2), (9003, 'good', 3)")
    shop.rows("DELETE FROM orders WHERE id = 3")
    replica = shop.rows("SELECT * FROM orders_current ORDER BY id")
    assert "order 9002 has a negative amount" in shop.fails("run")
    assert shop.left() == (3, 0)
    assert shop.rows("SELECT * FROM orders_current ORDER BY id") == replica

    shop.rows("UPDATE orders SET amount = 2 WHERE id = 9002")
    shop.succeeds("run")
    assert shop.is_equal()
    assert shop.left() == (0, 0)
    assert shop.audit() == {"INSERT": ROWS + 3, "UPDATE_BEFORE": 2, "UPDATE_AFTER": 2, "DELETE": 1}
    assert shop.consumptions("orders_stream") == [
        ("FAILED", "RTAS", None),
        ("CONSUMED", "MERGE", ROWS + 1),  # into the empty table that the first run has left
        ("FAILED", "MERGE", None),
        ("CONSUMED", "MERGE", 3),
    ]
    assert [outcome for outcome, *_ in shop.consumptions("orders_log_stream")] == ["CONSUMED"] * 4


def test_full_refresh_starts_the_stream_again(shop: Shop) -> None:
    """A model with the materialization `table` is replaced by each run. A stream by key on it shows the rows that differ."""
    shop.succeeds("run")
    shop.rows("ALTER TABLE orders_by_item SET PROPERTIES ('change_tracking' = 'true')")
    shop.rows("ALTER TABLE orders_by_item ADD PRIMARY KEY (item) RELY")
    shop.rows("CREATE STREAM by_item_stream ON TABLE orders_by_item IDENTITY = KEY")
    ((amount,),) = shop.rows("SELECT amount FROM orders_by_item WHERE item = 'item 1'")
    shop.rows("DELETE FROM orders WHERE id = 1")
    shop.succeeds("run", "--full-refresh")
    assert shop.is_equal()
    assert shop.rows("SELECT __change_type, item, amount FROM by_item_stream ORDER BY amount DESC") == [
        ("UPDATE_BEFORE", "item 1", amount),
        ("UPDATE_AFTER", "item 1", amount - 1),
    ]
    assert shop.consumptions("orders_stream") == [("CONSUMED", "RTAS", ROWS), ("CONSUMED", "RTAS", ROWS - 1)]
    assert shop.audit() == {"INSERT": ROWS, "DELETE": 1}, "the audit log says full_refresh=false"

    shop.rows("DROP TABLE orders_current")
    shop.rows("DELETE FROM orders WHERE id = 2")
    shop.succeeds("run")
    assert shop.is_equal()

    # A stream that shows all rows again, over a table that has them: dbt would insert them once more, and miss what was deleted.
    shop.rows("DELETE FROM orders WHERE id = 3")
    shop.rows("DROP STREAM orders_stream")
    shop.rows("DROP STREAM orders_log_stream")
    said = shop.fails("run")
    assert "stream orders_stream starts with all rows" in said
    assert "stream orders_log_stream starts with all rows" in said
    assert shop.left() == (ROWS - 3, ROWS - 3)

    shop.rows("ALTER STREAM orders_log_stream SET OFFSET TO LATEST")
    shop.rows("INSERT INTO orders VALUES (9004, 'new', 4)")
    shop.succeeds("run", "--full-refresh")
    assert shop.is_equal()
    assert shop.audit() == {"INSERT": ROWS + 1, "DELETE": 2}
