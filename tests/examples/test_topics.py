"""The demos with a Kafka topic as a newcomer runs them, short."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.examples.support import left_over, run
from tests.kafka.broker import Broker

PROOFS = {
    "orders": (
        r"each message once +{sent} messages, [1-9]\d* of them bad; 0 missing, 0 wrong",
        r"orders_stream +orders +MERGE +CONSUMED",
    ),
    "debezium": (
        r"history = all states +[1-9][\d,]+ rows; 0 missing, 0 wrong",
        r"debezium_stream +flight_history +MERGE +CONSUMED",
    ),
}
"""What each demo says: a proof, and a line of the ledger."""


@pytest.mark.spark
@pytest.mark.parametrize("demo", PROOFS)
def test_the_story_is_told_and_proved(tmp_path: Path, broker: Broker, demo: str) -> None:
    done = run(tmp_path, demo, "--flights", "1000", "--bootstrap", broker.bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    assert text.count("PROVED") == 2 * {"orders": 3, "debezium": 2}[demo]
    assert re.search(r"killed \(process \d+\) after its first write", text)
    sent = sum(int(n.replace(",", "")) for n in re.findall(r"send events +([\d,]+) messages", text))
    assert sent > 1000
    proof, ledger = PROOFS[demo]
    assert re.search("PROVED +" + proof.format(sent=f"{sent:,}"), text)
    assert re.search(ledger, text)
    assert "Every proof held" in text
    assert left_over(tmp_path, demo) == []

    again = run(tmp_path, demo, "--flights", "100", "--bootstrap", broker.bootstrap)
    assert again.returncode == 2
    assert f"has a topic streamql-{demo} already" in again.stderr


def test_change_events_come_late_and_twice() -> None:
    from examples.debezium.__main__ import _events

    events = _events(5000)
    lsns = [lsn for event in events if (lsn := event.journal.get("lsn")) is not None]
    assert len(set(lsns)) < len(lsns)
    assert lsns != sorted(lsns)
    assert {event.journal["op"] for event in events} == {"r", "c", "u", "d", "tombstone"}


def test_order_events_have_all_that_a_topic_may_have() -> None:
    from examples.orders.__main__ import _events

    events = _events(5000)
    types = Counter(event.journal["type"] for event in events)
    assert set(types) == {"event", "tombstone", "bad"}
    assert {event.journal.get("status") for event in events if event.journal["type"] == "event"} == {
        "placed",
        "late",
        "placed again",
    }
    placed = Counter(event.key for event in events if event.journal.get("status") == "placed")
    assert len(placed) == 5000
    assert set(placed.values()) == {1, 2}
    assert events == _events(5000)


@pytest.mark.parametrize("arguments", [("--flights", "3"), ("--nonsense",)])
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run(tmp_path, "orders", *arguments)
    assert done.returncode == 2
    assert "usage: python -m examples.orders" in done.stderr
