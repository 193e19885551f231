"""The command as a process of its own: what it says at its start, and how it ends."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamql.extension.build import extension_jar
from streamql.extension.metastore import prepare
from streamql.extension.platforms import current
from tests.small import SHORT_LIVED_ARGUMENTS

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 300


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "streamql", *SHORT_LIVED_ARGUMENTS, *argv]


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_GATEWAY_PORT", "JAVA_TOOL_OPTIONS")}
    extension_jar(current())  # compiled here, so that nothing is said about it there
    return kept | {"PYTHONPATH": str(ROOT)}


def javas(data: Path) -> list[str]:
    """The processes that have the data directory in their command line."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if "java" in line and str(data) in line]


@pytest.mark.spark
def test_a_quiet_start_and_only_rows_on_stdout(tmp_path: Path) -> None:
    script = """CREATE TABLE t (id INT); INSERT INTO t VALUES (1); SELECT * FROM t; VACUUM t; SELECT 1 / 0"""
    done = subprocess.run(
        command("--data", "lake", "--output", "csv"),
        input=script,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == "id\n1\n"
    made = f"made a new lakehouse in {tmp_path}/lake\nINSERT: 1 row inserted\n"
    assert done.stderr.startswith(f"{made}error in statement 5, line 1: [DIVIDE_BY_ZERO]")
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_script_that_ends_inside_a_transaction(tmp_path: Path) -> None:
    argv = command("--data", str(tmp_path / "lake"), "-e", "BEGIN TRANSACTION; SELECT 1 AS one", "--output", "csv")
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert (done.returncode, done.stdout) == (1, "one\n1\n")
    assert "without COMMIT; it was rolled back" in done.stderr


def test_doctor_of_a_lake_without_streams(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    prepare(tmp_path / "lake", (tmp_path / "lake").as_uri())
    argv = command("--data", str(tmp_path / "lake"), "doctor")
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "every stream and dynamic table can be read, and no claim is left behind\n"


def test_the_data_directory_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    argv = command("--data", str(tmp_path / "lake"), "-e", "SELECT 1")
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: the data directory cannot be used: {tmp_path}/lake: File exists\n"


@pytest.mark.spark
def test_ctrl_c_at_a_terminal(tmp_path: Path) -> None:
    """A progress line is shown, the statement is cancelled, and nothing is left running."""
    ours, theirs = pty.openpty()
    sql = "SELECT 1 AS one; SELECT max(sha2(repeat(id, 20000), 512)) FROM range(100000000)"
    process = subprocess.Popen(
        command("--data", str(tmp_path / "lake"), "-e", sql),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's & leaves it ignored
        text=True,
    )
    os.close(theirs)
    assert process.stdout is not None
    said = ""
    with process.stdout:
        assert process.stdout.readline().startswith("+---")
        deadline = time.monotonic() + SECONDS_MAX
        while " tasks" not in said.partition("1 row (")[2] and time.monotonic() < deadline:
            said += os.read(ours, 4096).decode(errors="replace")
        process.send_signal(signal.SIGINT)
        code = process.wait(SECONDS_MAX)
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # how Linux says that the other side of a terminal is closed
            break
        if not more:
            break
        said += more.decode(errors="replace")
    os.close(ours)
    assert code == 130
    assert said.rstrip().endswith("\x1b[Kcancelled")
    assert "Traceback" not in said
    assert javas(tmp_path) == []
