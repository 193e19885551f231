"""`streamql translate`: where the translation and the counts go, and exit codes. Spark is not started."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from streamql.cli.main import main

SCRIPT = "-- a copy\nINSERT INTO t SELECT IFF(a, 1, 2) AS b FROM s;\n"
SPARK = "-- a copy\nINSERT INTO t SELECT IF(a, 1, 2) AS b FROM s;\n"


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "etl.sql"
    file.write_text(SCRIPT, encoding="utf-8")
    return str(file)


def test_a_file(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--from", "snowflake", script]) == 0
    assert capsys.readouterr() == (SPARK, "1 statement: 1 translated, 0 translated with notes, 0 not translated\n")
    assert main(["-S", "translate", "--from", "snowflake", script]) == 0
    assert capsys.readouterr() == (SPARK, "")


def test_stdin_and_what_is_not_translated(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SCRIPT}CALL k();\nSELECT zorro(1);"))
    assert main(["translate", "--from", "snowflake", "-"]) == 1
    out, err = capsys.readouterr()
    assert "-- CALL k();" in out
    assert err == "3 statements: 1 translated, 1 translated with notes, 1 not translated\n"


@pytest.mark.parametrize("system", ["snowflake", "databend", "clickzetta"])
@pytest.mark.parametrize(("text", "expected"), [("", ""), ("-- nothing\n", "-- nothing\n"), (";;\n", "")])
def test_without_statements(
    system: str, text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.sql").write_text(text, encoding="utf-8")
    assert main(["translate", "--from", system, str(tmp_path / "e.sql")]) == 0
    assert capsys.readouterr() == (
        expected,
        "0 statements: 0 translated, 0 translated with notes, 0 not translated\n",
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["etl.sql"], "--from"),
        (["--from", "oracle", "etl.sql"], "invalid choice: 'oracle'"),
        (["--from", "snowflake"], "FILE"),
        (["--from", "snowflake", "no-such.sql"], "cannot read no-such.sql"),
        (["--from", "snowflake", "etl.sql", "--output", "csv"], "--output"),
    ],
)
def test_wrong_usage(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("examples:", "exit codes:", "-- not translated:", "snowflake"))
    assert max(map(len, out.splitlines())) <= 100
