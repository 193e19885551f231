"""The demo as a newcomer runs it, short."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.examples.support import ROOT, SECONDS_MAX, command, environment, left_over, run

DEMO = "flights"


@pytest.mark.spark
def test_two_months_are_told_and_proved(tmp_path: Path) -> None:
    done = run(tmp_path, DEMO, "--months", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    assert "FAILED" not in text
    assert (
        text.count("PROVED") == 4 * 3 + 1 + 3 + 1
    )  # after each of four chapters, of dynamic table and pipeline, at the end
    assert re.search(r"PROVED +dynamic table = its query +[\d,]+ rows, 0 missing, 0 unexpected", text)
    assert re.search(r"streamql scheduler --once +keep_planes finished, count_planes finished", text)
    assert "3 of 3 in quarantine" in text
    assert re.search(r"PROVED +history = all reports +[\d,]+ states, 0 missing, 0 wrong", text)
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
    assert left_over(tmp_path, DEMO) == []


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    done = run(tmp_path, DEMO, "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "not empty" in done.stderr
    assert (tmp_path / "mine").read_text() == "kept"


@pytest.mark.parametrize("arguments", [("--months", "13"), ("--keep", "--data", "x"), ("--nonsense",)])
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run(tmp_path, DEMO, *arguments)
    assert done.returncode == 2
    assert "usage: python -m examples.flights" in done.stderr


@pytest.mark.spark
def test_interrupted(tmp_path: Path) -> None:
    started = subprocess.Popen(
        command(DEMO, "--months", "1"),
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
    assert left_over(tmp_path, DEMO) == []
