"""kill -9 in an export at each of its steps, and two exports at the same time."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from streamql.errors import StreamqlError
from streamql.features.tablestore import export as export_module
from streamql.features.tablestore.jobs.windows import TIME_MAX_MS
from tests.consume.support import ROOT, TIMEOUT_SECONDS, data_of
from tests.sample import sample
from tests.tablestore.shop import Shop

POINTS = (
    "after:create:1",
    "after:record:1",
    "before:append:1",
    "after:append:1",
    "before:records:1",
    "before:join:1",
    "before:publish:1",
    "after:publish:1",
    "before:append:2",
    "after:append:2",
)
JOB = {"isExportSequenceInfo": True}


def killed(shop: Shop, point: str) -> None:
    command = [sys.executable, "-m", "tests.tablestore.child", data_of(shop.spark), point, shop.job_text(**JOB)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("point", sample("kills in exports", POINTS, 3))
def test_a_job_that_was_killed_exports_the_same_when_it_is_run_again(shop: Shop, point: str) -> None:
    shop.orders(shards=3)
    shop.run(
        "INSERT INTO {s}.orders SELECT id, concat('c', id), id FROM range(30)",
        "UPDATE {s}.orders SET id = id + 7 WHERE id > 20",
    )
    target = shop.directory / f"0-{TIME_MAX_MS}.jsonl"
    shop.job(**JOB, statusTable=f"{shop.schema}.other_status")
    expected = target.read_bytes()
    target.unlink()
    killed(shop, point)
    is_whole = POINTS.index(point) >= POINTS.index("after:publish:1")
    assert target.exists() == is_whole
    was_claimed = POINTS.index(point) >= POINTS.index("after:append:1")
    if was_claimed:  # what came after the first run is the next job's
        shop.run("DELETE FROM {s}.orders WHERE id < 5")
    done = shop.job(**JOB)
    assert target.read_bytes() == expected
    assert sum(done.counts.values()) == len(expected.splitlines())
    assert [p.name for p in shop.directory.iterdir()] == [target.name], "no hidden file is left"


def test_of_two_runs_at_the_same_time_one_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.orders()
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1)")
    writes, goes_on = threading.Event(), threading.Event()
    write = export_module.write

    def waiting(*arguments: Any) -> Any:
        writes.set()
        assert goes_on.wait(60)
        return write(*arguments)

    monkeypatch.setattr(export_module, "write", waiting)
    found: list[Any] = []
    first = threading.Thread(target=lambda: found.append(shop.job()))
    first.start()
    assert writes.wait(60)
    with pytest.raises(StreamqlError) as e:
        shop.job()
    assert e.value.code == "JOB_BUSY"
    monkeypatch.setattr(export_module, "write", write)
    other = shop.job(1)  # another window is another job
    goes_on.set()
    first.join(60)
    assert sum(found[0].counts.values()) == sum(other.counts.values()) == 3


def test_reads_that_failed_are_repeated(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.orders()
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1)")
    write, failures = export_module.write, ["java.net.SocketTimeoutException: Read timed out"] * 2

    def failing(*arguments: Any) -> Any:
        if failures:
            raise RuntimeError(failures.pop())
        return write(*arguments)

    monkeypatch.setattr(export_module, "write", failing)
    with pytest.raises(RuntimeError, match="timed out"):
        shop.job(maxRetries=1)
    failures.append("java.io.IOException: Connection reset by peer")
    shop.job(maxRetries=1)
    assert any(text.startswith("retry 1 of 1 in 0.1 s: java.io.IOException") for text in shop.said)
    failures.append("java.io.IOException: No space left on device")
    with pytest.raises(RuntimeError, match="No space left"):
        shop.job(2)
    assert not (shop.directory / f"2-{TIME_MAX_MS}.jsonl").exists()


def test_a_status_table_that_is_dropped_during_an_export(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.orders()
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1)")
    write = export_module.write

    def dropping(*arguments: Any) -> Any:
        shop.run("DROP TABLE {s}.status")
        return write(*arguments)

    monkeypatch.setattr(export_module, "write", dropping)
    with pytest.raises(StreamqlError) as e:
        shop.job(writer="parquet")
    assert e.value.code == "STATUS_TABLE_INVALID"
    monkeypatch.setattr(export_module, "write", write)
    with pytest.raises(StreamqlError) as e:
        shop.job(1)
    assert e.value.code == "STATUS_TABLE_INVALID", "the table remembers that it had this status table"
