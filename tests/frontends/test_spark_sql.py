"""`streamql spark-sql`: Spark's own bin/spark-sql, and a sidecar that answers it. Each test starts one, as a person would."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.frontends.support import SECONDS_MAX, SEED, environment, eventually, finished, streamql

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a stream, made by a script."""
    data = tmp_path_factory.mktemp("spark-sql") / "lake"
    script = data.parent / "seed.sql"
    script.write_text(SEED + "INSERT INTO t VALUES (1, 'a;b'), (2, 'b');\n")
    done = finished(streamql(data, "spark-sql", "-S", "-f", str(script)))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return data


def test_a_script_on_standard_input_consumes_by_merge(lake: Path) -> None:
    script = """
        SELECT v, __change_type FROM s ORDER BY v; -- a comment; with a semicolon
        MERGE INTO x USING s ON x.id = s.id WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT VALUES (s.id, s.v);
        SELECT count(*) FROM s;
        SELECT count(*) FROM x;
    """
    done = finished(streamql(lake, "spark-sql", "-S"), script)
    assert done.returncode == 0, done.stderr
    # Between the rows there are prompts, with what was read: bin/spark-sql takes any standard input for a person's.
    assert "a;b\tINSERT\nb\tINSERT\n" in done.stdout
    assert re.findall(r"^\d$", done.stdout, re.MULTILINE) == ["0", "2"]


def test_an_error_has_its_code_and_no_traceback(lake: Path) -> None:
    done = finished(
        streamql(lake, "spark-sql", "-S", "--database", "default", "-e", "SELECT 1; CREATE STREAM s ON TABLE t")
    )
    assert (done.returncode, done.stdout) == (1, "1\n")
    assert "[STREAM_ALREADY_EXISTS] stream default.s exists" in done.stderr
    assert "Hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_python_that_is_not_there(lake: Path) -> None:
    python = "spark.streamql.python=/no/such/python"
    done = finished(streamql(lake, "spark-sql", "-S", "--conf", python, "-e", "SELECT 1; SHOW STREAMS"))
    assert (done.returncode, done.stdout) == (1, "1\n")
    assert "[SIDECAR_FAILED] Python could not be started" in done.stderr
    assert "spark.streamql.python" in done.stderr
    done = finished(streamql(lake, "spark-sql", "-S", "--conf", python, "-e", "SELEC 1"))
    assert "[PARSE_SYNTAX_ERROR]" in done.stderr  # Spark's own: nobody needs to be asked for it
    assert "SIDECAR_FAILED" not in done.stderr


def test_ctrl_c_at_a_terminal_cancels_the_statement_and_not_the_shell(lake: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        streamql(lake, "spark-sql"),
        env=environment() | {"TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    said = ""

    def hears(pattern: str) -> bool:
        nonlocal said
        with contextlib.suppress(BlockingIOError, OSError):
            said += os.read(ours, 65536).decode(errors="replace")
        if re.search(pattern, said, re.DOTALL):
            said = ""
            return True
        return False

    def types(text: str) -> None:
        os.write(ours, text.encode())

    try:
        eventually(lambda: hears("spark-sql.*> "), lambda: said)
        types("SHOW STREAMS;\n")
        eventually(lambda: hears(r"Fetched 1 row"), lambda: said)
        sleep = "SELECT java_method('java.lang.Thread', 'sleep', CAST(id % 1 + 5 AS BIGINT)) AS m FROM range(0, 1000000, 1, 2)"
        types(f"SELECT max(m) FROM ({sleep});\n")
        time.sleep(8)
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does at Ctrl-C: to the sidecar as well
        eventually(lambda: hears("(?i)cancel"), lambda: said)
        types("\nSHOW STREAMS;\n")
        eventually(lambda: hears(r"Fetched 1 row"), lambda: said)
        types("quit;\n")
        process.wait(SECONDS_MAX)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(60)
        os.close(ours)
    assert process.returncode == 0
