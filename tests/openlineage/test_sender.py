"""The sender: order, a receiver that is down, and the end of a process. Names of datasets. Without Spark."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from streamql.catalog.observers import NUMBER, work_id
from streamql.features.openlineage import sender
from streamql.features.openlineage.configured import is_on
from streamql.features.openlineage.datasets import at_path
from streamql.features.openlineage.note import Note
from streamql.features.openlineage.sender import Sender

ROW = {
    "event": "begun",
    "consumption_id": "7d3c4d5e-53a1-4dbb-8a7f-0b2f2b9e0e11",
    "stream": "shop.s",
    "source": "shop.o",
    "operation": "INSERT",
    "target": "spark_catalog.shop.t",
    "target_path": "file:/lake/t",
    "target_version": None,
    "rows_written": None,
    "statement": "INSERT INTO t SELECT * FROM s",
    "outcome": None,
    "user_name": "u",
    "host": "h",
    "pid": 1,
}


def note(number: int) -> Note:
    row = {**ROW, NUMBER: number}
    return Note(work_id(row, number), False, [row], {}, None, None, "streamql", 0, "4.2.0")


class Line:
    """Takes events, unless it is down."""

    def __init__(self) -> None:
        self.is_down = False
        self.taken: list[str] = []
        self.tried = threading.Event()

    def __call__(self, event: Any) -> None:
        self.tried.set()
        if self.is_down:
            raise ConnectionError("refused")
        self.taken.append(event.run.runId)


def test_a_receiver_that_is_down_delays_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "PAUSE_SECONDS_MIN", 0.01)
    monkeypatch.setattr(sender, "PAUSE_SECONDS_MAX", 0.01)
    line = Line()
    line.is_down = True
    s = Sender(line)
    notes = [note(n) for n in range(20)]
    with caplog.at_level(logging.WARNING, "streamql"):
        for one in notes:
            s.put(one)
        assert line.tried.wait(10)
        line.is_down = False
        s.close(10)
    assert line.taken == [n.id for n in notes]
    said = [r.getMessage() for r in caplog.records]
    assert [m.split(",")[0] for m in said] == [
        "lineage waits",
        "the receiver of lineage takes events again; 0 were dropped meanwhile",
    ]


def test_what_was_not_sent_is_said_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    line = Line()
    line.is_down = True
    s = Sender(line)
    with caplog.at_level(logging.WARNING, "streamql"):
        for n in range(3):
            s.put(note(n))
        s.close(0.2)
    assert "3 events of lineage were not sent" in caplog.records[-1].getMessage()
    line.is_down = False
    s.close(10)  # so that nothing waits at the end of this process


def test_the_oldest_are_dropped_if_too_many_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "WAITING_MAX", 5)
    monkeypatch.setattr(sender, "PAUSE_SECONDS_MIN", 0.01)
    monkeypatch.setattr(sender, "PAUSE_SECONDS_MAX", 0.01)
    line = Line()
    line.is_down = True
    s = Sender(line)
    notes = [note(n) for n in range(9)]
    with caplog.at_level(logging.WARNING, "streamql"):
        for one in notes:
            s.put(one)
        line.is_down = False
        s.close(10)
    assert line.taken[-5:] == [n.id for n in notes[-5:]]
    assert "4 were dropped" in caplog.records[-1].getMessage()


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("file:/lake/shop.db/a%20b", "file", "/lake/shop.db/a b"),
        ("/lake/t", "file", "/lake/t"),
        ("s3a://bucket/lake/t", "s3://bucket", "lake/t"),
        ("gs://bucket/t", "gs://bucket", "t"),
        ("hdfs://name:8020/lake/t", "hdfs://name:8020", "/lake/t"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net", "/t"),
    ],
)
def test_names_of_datasets(path: str, namespace: str, name: str) -> None:
    found = at_path(path, "spark_catalog.shop.t")
    assert (found.namespace, found.name, found.table) == (namespace, name, "shop.t")


def test_it_is_on_only_if_the_client_has_a_transport(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    assert not is_on()
    (tmp_path / "openlineage.yml").write_text("transport: {type: noop}")
    assert is_on()
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert not is_on()
