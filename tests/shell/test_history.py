"""The history file: whose it is, and what is not in it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from streamql.cli.shell import history


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "made" / "history"
    for text in ("SELECT 1;", "SELECT\n\n  '+',\n2;", "é;"):
        history.append(path, text)
    assert history.load(path) == ["SELECT 1;", "SELECT\n\n  '+',\n2;", "é;"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_others_could_read(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("")
    path.chmod(0o644)
    history.append(path, "SELECT 1;")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "SET spark.hadoop.fs.s3a.secret.key = abc;",
        "SET fs.s3a.access.key=abc;",
        "CREATE TABLE t USING jdbc OPTIONS (url 'x', user 'u', PASSWORD 'p');",
        "SELECT aes_decrypt(a, 'key');",
        "SET fs.azure.account.key.x=1",
        "!curl https://me:pass1@host/",
        " SELECT 1;",
        "",
        "\n",
        "x" * 30_000,
    ],
)
def test_what_is_not_written(text: str, tmp_path: Path) -> None:
    history.append(tmp_path / "history", text)
    assert not (tmp_path / "history").exists()


def test_what_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    assert history.load(tmp_path / "nosuch") == []
    assert history.load(tmp_path) == []
    history.append(tmp_path, "SELECT 1;")
    (tmp_path / "odd").write_bytes(b"\xff\xfe+\n+\xff\nx\n")
    assert len(history.load(tmp_path / "odd")) == 1


def test_it_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ENTRIES_MAX", 3)
    path = tmp_path / "history"
    for n in range(7):
        history.append(path, f"SELECT {n};")
    assert history.load(path) == ["SELECT 4;", "SELECT 5;", "SELECT 6;"]
    assert history.load(path) == ["SELECT 4;", "SELECT 5;", "SELECT 6;"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["history"]


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAMQL_CACHE", str(tmp_path))
    monkeypatch.delenv("STREAMQL_HISTORY", raising=False)
    assert history.history_file() == tmp_path / "history"
    monkeypatch.setenv("STREAMQL_HISTORY", str(tmp_path / "mine"))
    assert history.history_file() == tmp_path / "mine"
