"""The shell as a process of its own at a terminal, with the real session behind it."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shell.terminal import CTRL_C, CTRL_D, CTRL_R, PROMPT, TAB, UP, Terminal
from tests.small import SHORT_LIVED_ARGUMENTS


def embedded(directory: Path, *argv: str) -> Terminal:
    """A shell with a session of its own."""
    return Terminal(directory, "--data", str(directory / "lake"), *SHORT_LIVED_ARGUMENTS, *argv)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = embedded(tmp_path)
    yield made
    made.close()


def statements(terminal: Terminal) -> None:
    # several lines, and a stream
    terminal.keys("SELECT id,\r", "  amount\r", "FROM orders_stream", "\r", ";", "\r")
    assert re.search(r"\|\s+1 \|\s+10 \|", terminal.wait(r"1 row \(.* s\)"))

    # an error says where
    terminal.keys("SELECT 1,\r", " nosuch;", "\r")
    said = terminal.wait("hint|SQLSTATE: .*")
    assert "error in line 2: [UNRESOLVED_COLUMN" in said
    assert "2 |" in said
    assert "Traceback" not in said

    # completion: of a keyword, and of the stream
    terminal.wait(PROMPT)
    terminal.keys("SELECT count(*) AS changes FROM orders_s", TAB)
    terminal.wait("orders_stream")
    terminal.keys(";", "\r")
    terminal.wait(r"1 row")


def commands(terminal: Terminal) -> None:
    terminal.do("\\o csv", "rows are shown as csv")
    assert "id,amount\n1,10\n" in terminal.do("SELECT id, amount FROM orders;", r"1 row \(")
    terminal.do("\\o table", "rows are shown as table")
    terminal.do("\\timing off", "timing is off")
    assert "orders_stream  stream" in terminal.do("\\d", "orders_stream  stream")
    assert "| col_name" in terminal.do("\\d orders_stream", "source_id[^$]*__change_type")
    assert "CREATE [OR REPLACE]" in terminal.do("\\help create stream", "for example")
    assert "CREATE STREAM" in terminal.do("help", "keys: Enter")
    pasted = "SELECT 'first' AS said; -- of two\nSELECT count(*)\n  FROM orders;"
    said = terminal.do(f"\x1b[200~{pasted}\x1b[201~", r"\[2\][^$]*1 row")
    assert re.search(r"\[1\] SELECT 'first' AS said\n[^$]*first[^$]*\[2\] SELECT count\(\*\) FROM orders\n", said)
    assert "did you mean \\streams" in terminal.do("\\steams", "hint: .*")
    assert "from the system" in terminal.do("!echo from the system", "\nfrom the system")


def cancelling(terminal: Terminal) -> None:
    # Ctrl-C cancels the statement and not the shell
    terminal.keys("SELECT sum(hash(id)) FROM range(1000000000000);", "\r")
    terminal.wait(" tasks, ")
    terminal.keys(CTRL_C)
    terminal.wait("cancelled")
    assert "still here" in terminal.do("SELECT 'still here' AS answer;", "1 row")

    # again and again, until Ctrl-C
    terminal.keys("\\watch 0.2", "\r")
    for _ in range(3):
        terminal.wait("every 0.2 s until Ctrl-C[^$]*still here")
    terminal.keys(CTRL_C)
    terminal.wait("cancelled")


@pytest.mark.spark
def test_a_session_at_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait(r"streamql \(starting\)>", 60)
    terminal.do("CREATE TABLE orders (id INT, amount INT);", "OK")  # it waits for Spark
    terminal.do("ALTER TABLE orders SET PROPERTIES ('change_tracking' = 'true');", "OK")
    terminal.do("CREATE TABLE STREAM orders_stream ON TABLE orders;", "OK")
    terminal.do("INSERT INTO orders VALUES (1, 10);", "INSERT: 1 row inserted")
    statements(terminal)
    commands(terminal)
    cancelling(terminal)

    # history: the last, and one that is looked for
    terminal.wait(PROMPT)
    terminal.keys(UP, UP, "\r")
    terminal.wait(r"1 row")
    terminal.keys(CTRL_R, "amount FROM ord")
    terminal.wait("SELECT id, amount FROM orders;")
    terminal.keys("\r", "\r")
    terminal.wait(r"1 row")

    # an input that is given up, and an open transaction
    terminal.keys("SELECT 'never", CTRL_C)
    terminal.do("BEGIN TRANSACTION;", "OK")
    assert "default, in transaction" in terminal.seen
    terminal.keys(CTRL_D)
    terminal.wait("warning: the transaction was left without COMMIT; it was rolled back")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.seen

    history = tmp_path / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "CREATE TABLE STREAM orders_stream" in history.read_text()


@pytest.mark.spark
def test_a_script_first(tmp_path: Path) -> None:
    script = tmp_path / "setup.sql"
    script.write_text("CREATE DATABASE made;\nUSE made;\nSELECT 'from the script' AS said;\n")
    terminal = embedded(tmp_path, "-i", str(script))
    terminal.wait("from the script")
    terminal.wait(r"streamql \(made\)>")
    terminal.keys("quit;", "\r")
    assert terminal.end() == 0


def test_no_such_server(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--connect", "sc://127.0.0.1:1")
    said = terminal.wait("hint: .*", 60)
    assert "no server answers at 127.0.0.1:1" in said
    assert terminal.end() == 1
