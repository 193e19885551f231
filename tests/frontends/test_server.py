"""`streamql server`: one JVM, and clients of all types: PyHive, beeline, Spark Connect. Each behaves as the others do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamql.extension.host import spark_home
from tests.frontends.support import (
    SEED,
    Client,
    children,
    environment,
    eventually,
    finished,
    running,
    said,
    stop,
    streamql,
)
from tests.shell.terminal import CTRL_C, CTRL_D, PROMPT, TAB, Terminal

pytestmark = pytest.mark.spark

SLEEP = "SELECT java_method('java.lang.Thread', 'sleep', CAST(id % 1 + 5 AS BIGINT)) AS m FROM range(0, 1000000, 1, 2)"
SLOW = f"SELECT max(m) AS m FROM ({SLEEP})"
"""It sleeps: 2,500 s on two cores, and its tasks end at once when they are cancelled."""

RUNNING = 1
"""Of Thrift's TOperationState."""


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    log: Path
    port: int
    connect_port: int

    @property
    def jdbc(self) -> str:
        return f"jdbc:hive2://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> Client:
        return Client(self.port, **options)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("server")
    log = directory / "log"
    argv = streamql(directory / "lake", "server", "--port", "0", "--connect", "--connect-port", "0")
    with running(argv, log) as process:
        urls = said(process, log, r"ready: jdbc:hive2://127\.0\.0\.1:(\d+) sc://127\.0\.0\.1:(\d+)\n")
        made = Server(process, log, int(urls[1]), int(urls[2]))
        with made.client() as client:
            for statement in SEED.split(";"):
                if statement.strip():
                    client.rows(statement)
        yield made
        sidecars = children(process.pid)
        begun = time.monotonic()
        assert stop(process) == 128 + signal.SIGTERM
        assert time.monotonic() - begun < 60
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in sidecars))
        text = log.read_text()
        assert "Traceback" not in text
        assert "\tat " not in text, "errors of statements are their clients'"


def test_consuming_and_errors_over_thrift(server: Server) -> None:
    with server.client() as client:
        client.rows("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        assert client.rows("SELECT id, v, __change_type FROM s ORDER BY id") == [(1, "a", "INSERT"), (2, "b", "INSERT")]
        assert client.rows("SELECT stream_has_data('s')") == [(True,)]
        client.rows("INSERT INTO x SELECT id, v FROM s")
        assert client.rows("SELECT count(*) FROM s") == [(0,)]
        assert client.rows("SELECT count(*) FROM x") == [(2,)]
        state, text = client.fails("CREATE STREAM s ON TABLE t")
        assert (state, "[STREAM_ALREADY_EXISTS]" in text) == ("42P07", True)
        assert "Hint: " in text
        state, text = client.fails("CREATE TABLE s (id INT)")
        assert (state, "[NAME_ALREADY_IN_USE]" in text) == ("42P07", True)
        state, _ = client.fails("SHOW STREAMS FORM db")
        assert state == "42601"
        assert "Traceback" not in text


def test_sessions_have_their_own_database_and_views(server: Server) -> None:
    with server.client() as one, server.client() as two:
        one.rows("CREATE DATABASE IF NOT EXISTS other")
        one.rows("USE other")
        one.rows("CREATE TEMPORARY VIEW s AS SELECT 42 AS answer")
        assert one.rows("SELECT * FROM s") == [(42,)]
        assert two.rows("SELECT count(*) FROM s")[0][0] >= 0
        assert two.rows("SELECT current_schema()") == [("default",)]
        assert "STREAM_NOT_FOUND" in one.fails("DESC STREAM s")[1]
        assert one.rows("SHOW STREAMS") == []
        assert len(two.rows("SHOW STREAMS")) == 1


def test_eight_connections_consume_each_change_once(server: Server) -> None:
    with server.client() as client:
        client.rows("CREATE TABLE many (id BIGINT)")
        client.rows("ALTER TABLE many SET PROPERTIES ('change_tracking' = 'true')")
        client.rows("CREATE STREAM many_s ON TABLE many")
        client.rows("CREATE TABLE many_x (id BIGINT, who INT)")
        client.rows("INSERT INTO many SELECT id FROM range(1000)")
        failures: list[BaseException] = []

        def work(i: int) -> None:
            try:
                with server.client() as own:
                    own.rows(f"INSERT INTO many_x SELECT id, {i} FROM many_s")
            except BaseException as e:  # it is for the test's thread to check
                failures.append(e)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert client.rows("SELECT count(*), count(DISTINCT id), count(DISTINCT who) FROM many_x") == [(1000, 1000, 1)]


def test_a_closed_session_gives_its_transaction_up(server: Server) -> None:
    with server.client() as stays:
        stays.rows("SET spark.streamql.busyTimeout=300ms")
        stays.rows("CREATE TABLE given (id INT)")
        stays.rows("INSERT INTO t VALUES (3, 'c')")
        leaves = server.client()
        leaves.rows("BEGIN TRANSACTION")
        leaves.rows("INSERT INTO given SELECT id FROM s")
        assert "[STREAM_BUSY]" in stays.fails("INSERT INTO given SELECT id FROM s")[1]
        leaves.close()
        # Its statement has committed, so the stream waits for the same transaction: at once, instead of in an hour.
        eventually(lambda: "[CONSUMPTION_PARTIALLY_COMMITTED]" in stays.fails("INSERT INTO x SELECT id, v FROM s")[1])
        stays.rows("BEGIN TRANSACTION")
        stays.rows("INSERT INTO given SELECT id FROM s")
        stays.rows("COMMIT")
        assert stays.rows("SELECT count(*) FROM given") == [(1,)]
        assert stays.rows("SELECT count(*) FROM s") == [(0,)]


def test_cancel_reaches_the_job_of_a_consuming_statement(server: Server) -> None:
    with server.client() as client:
        client.rows("INSERT INTO t VALUES (4, 'd')")
        cursor = client.cursor()
        cursor.execute(f"INSERT INTO x SELECT id, m FROM s CROSS JOIN ({SLOW})", async_=True)
        time.sleep(3)
        assert cursor.poll().operationState == RUNNING
        begun = time.monotonic()
        cursor.cancel()
        assert client.rows("SET spark.streamql.busyTimeout=60s")
        client.rows("INSERT INTO x SELECT id, v FROM s")
        assert time.monotonic() - begun < 60
        assert client.rows("SELECT v FROM x WHERE id = 4") == [("d",)]


def test_a_sidecar_that_is_killed_is_replaced(server: Server) -> None:
    with server.client() as client, server.client() as inside:
        client.rows("INSERT INTO t VALUES (5, 'e')")
        inside.rows("BEGIN TRANSACTION")
        assert inside.rows("SELECT count(*) FROM s") == [(1,)]
        (sidecar,) = children(server.process.pid)
        cursor = client.cursor()
        cursor.execute(f"INSERT INTO x SELECT id, m FROM s CROSS JOIN ({SLOW})", async_=True)
        time.sleep(3)
        assert cursor.poll().operationState == RUNNING
        os.kill(sidecar, signal.SIGKILL)
        eventually(lambda: cursor.poll().operationState != RUNNING)
        assert "[SIDECAR_FAILED]" in cursor.poll().errorMessage
        assert cursor.poll().sqlState == "58000"
        client.rows("INSERT INTO x SELECT id, v FROM s")
        assert client.rows("SELECT v FROM x WHERE id = 5") == [("e",)]
        assert children(server.process.pid) != [sidecar]
        assert "the transaction was lost" in inside.fails("INSERT INTO x SELECT id, v FROM s")[1]
        inside.rows("ROLLBACK")
        assert inside.rows("SELECT count(*) FROM s") == [(0,)]


def test_beeline(server: Server, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "INSERT INTO t VALUES (6, 'f');\nINSERT INTO x SELECT id, v FROM s;\nSELECT v FROM x WHERE id = 6;\n"
    )
    beeline = [
        str(spark_home() / "bin" / "beeline"),
        "-u",
        server.jdbc,
        "-n",
        "someone",
        "--outputformat=csv2",
        "--silent=true",
    ]
    done = finished([*beeline, "-f", str(script)])
    assert "\nf\n" in done.stdout + "\n", done.stdout + done.stderr


CONNECT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.sql("INSERT INTO t VALUES (7, 'g')")
assert [r.id for r in spark.table("s").collect()] == [7]
frame = spark.sql("INSERT INTO x SELECT id, v FROM s")
frame.collect(); frame.collect()
assert spark.sql("SELECT count(*) AS n FROM x WHERE id = 7").first().n == 1
assert spark.table("s").count() == 0
try:
    spark.sql("DESC STREAM no_such").collect()
except Exception as e:
    print(e.getCondition(), e.getSqlState(), "Traceback" in str(e))
import streamql
print(len(streamql.sql("SHOW STREAMS LIKE 's'", spark).collect()))
print(spark.sql("SELECT v FROM x WHERE id = :id", args={"id": 7}).first().v)
spark.sql("INSERT INTO t VALUES (8, 'h')")
spark.sql("BEGIN TRANSACTION")
spark.sql("INSERT INTO x SELECT id, v FROM s")
spark.stop()
"""


def test_a_process_that_only_connects(server: Server) -> None:
    url = f"sc://127.0.0.1:{server.connect_port}"
    variables = environment() | {"JAVA_HOME": "/nonexistent"}
    argv = [sys.executable, "-W", "ignore", "-c", CONNECT, url]
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (0, "STREAM_NOT_FOUND 42P01 False\n1\ng\n"), done.stderr
    with server.client() as client:  # the session was closed inside a transaction
        client.rows("SET spark.streamql.busyTimeout=300ms")
        eventually(
            lambda: "[CONSUMPTION_PARTIALLY_COMMITTED]" in client.fails("INSERT INTO x SELECT id, 'no' FROM s")[1]
        )
        client.rows("ALTER STREAM s SET OFFSET TO LATEST")


LOOK = """
import sys
from streamql.cli.shell.lookups import overview
from streamql.cli.shell.snapshot import Snapshot
from streamql.console.sql.remote import RemoteSession
_, streams = overview(RemoteSession(sys.argv[1]), Snapshot())
print([(s.source, s.state, s.status.stale_soon, s.status.stale_after_ms is not None) for s in streams if s.name == "s"])
"""


def test_how_streams_stand_on_a_server(server: Server) -> None:
    """The facts by which the shell warns come from SHOW STREAMS, so a server gives them."""
    with server.client() as client:
        client.rows("INSERT INTO t VALUES (30, 'r')")
    argv = [sys.executable, "-W", "ignore", "-c", LOOK, f"sc://127.0.0.1:{server.connect_port}"]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (0, "[('default.t', 'data', False, True)]\n"), done.stderr
    with server.client() as client:
        client.rows("ALTER STREAM s SET OFFSET TO LATEST")


def test_the_shell_on_a_server(server: Server, tmp_path: Path) -> None:
    """No Spark of its own: a prompt at once, statements, errors, completion, Ctrl-C, and what the session leaves behind."""
    shell = Terminal(tmp_path, "--connect", f"sc://127.0.0.1:{server.connect_port}")
    try:
        shell.wait(PROMPT)
        shell.do("INSERT INTO t VALUES (9, 'i');", r"OK|row")
        assert re.search(r"\| INSERT +\|.*\| +9 \| i", shell.do("SELECT * FROM s;", "1 row"))
        shell.do("INSERT INTO x SELECT id, v FROM s;", r"INSERT: 1 row into x; s \d+ → \d+")
        shell.do("SELECT * FROM s;", "0 rows")
        wrong = shell.do("SELECT nosuch FROM s;", r"SQLSTATE: 42703")
        assert "SQLQueryContextLogger" not in wrong
        assert "Traceback" not in wrong
        shell.keys("SELECT 1 AS one FROM x WHERE id = 9 AND v", TAB)
        shell.wait("column")
        shell.keys(" = 'i';", "\r")
        shell.wait("1 row")
        shell.do("INSERT INTO t VALUES (10, 'j');", r"OK|row")
        shell.keys(f"INSERT INTO x SELECT id, m FROM s CROSS JOIN ({SLOW});", "\r")
        shell.wait("stage running")
        shell.keys(CTRL_C)
        shell.wait("cancelled")
        shell.do("INSERT INTO x SELECT id, v FROM s;", r"INSERT: 1 row into x; s \d+ → \d+")
        shell.do("BEGIN TRANSACTION;", "OK")
        shell.keys(CTRL_D)
        assert shell.end() == 0
    finally:
        shell.close()
    done = finished([sys.executable, "-m", "streamql", "--connect", f"sc://127.0.0.1:{server.connect_port}", "-S",
                     "--output", "csv", "-e", "SELECT v FROM x WHERE id = 9; SELECT nosuch"])  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "v\ni\n")
    assert "UNRESOLVED_COLUMN" in done.stderr
    assert "SQLQueryContextLogger" not in done.stderr


MANY = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
for _ in range(40):
    spark.sql("DESC STREAM s").collect()
spark.stop()
"""


def test_threads_of_the_sidecar_end_with_those_that_asked(server: Server) -> None:
    """Spark Connect runs each statement in a thread of its own, and Py4J has a connection for each that asks Python."""
    (sidecar,) = children(server.process.pid)
    threads = Path(f"/proc/{sidecar}/task")
    before = len(list(threads.iterdir()))
    argv = [sys.executable, "-W", "ignore", "-c", MANY, f"sc://127.0.0.1:{server.connect_port}"]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    with server.client() as client:
        client.rows("DESC STREAM s")
    eventually(lambda: len(list(threads.iterdir())) < before + 10, lambda: f"{len(list(threads.iterdir()))} > {before}")


def test_a_port_that_is_taken(server: Server, tmp_path: Path) -> None:
    done = finished(streamql(tmp_path / "lake", "server", "--port", str(server.port)))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"error: [INVALID_ARGUMENT] the server cannot listen at 127.0.0.1, port {server.port}"
    )
