"""Exports and readers in two real processes at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
from streamql.features.tablestore import export as export_module
from streamql.features.tablestore.reader import StreamReader
from tests.consume.support import ROOT, data_of
from tests.sample import amount
from tests.tablestore.second import ANSWER, records_of
from tests.tablestore.shop import Shop


class Second:
    """A second process over the data directory of a session."""

    def __init__(self, spark: SparkSession) -> None:
        command = [sys.executable, "-m", "tests.tablestore.second", data_of(spark)]
        self._process = subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answer()

    def ask(self, **request: Any) -> None:
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)

    def answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                return json.loads(line.removeprefix(ANSWER))
        raise AssertionError("the second process has ended")

    def end(self) -> None:
        with self._process:
            self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def second(spark: SparkSession) -> Iterator[Second]:
    process = Second(spark)
    yield process
    process.end()


def test_an_export_that_another_process_runs_is_refused(
    shop: Shop, second: Second, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.orders()
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1)")
    write, job = export_module.write, shop.job_text()
    answers = []

    def asking(*arguments: Any) -> Any:
        second.ask(job=job)
        answers.append(second.answer())
        return write(*arguments)

    monkeypatch.setattr(export_module, "write", asking)
    done = shop.job()
    assert answers == ["JOB_BUSY"]
    assert sum(done.counts.values()) == len(shop.lines()) == 3
    second.ask(job=job)
    assert second.answer() == done.counts, "it is run again, and finds the output"


def test_of_two_processes_that_run_a_job_at_once_no_rows_come_twice(shop: Shop, second: Second) -> None:
    shop.orders(shards=2)
    shop.run("INSERT INTO {s}.orders SELECT id, 'a', id FROM range(20)")
    for start in range(amount(2, 10)):
        more: dict[str, Any] = {"writer": "delta", "parameter": {"path": None, "table": f"{shop.schema}.out{start}"}}
        answers: list[Any] = []

        def here(start: int = start, more: dict[str, Any] = more, answers: list[Any] = answers) -> None:
            try:
                answers.append(dict(shop.job(start, **more).counts))
            except StreamqlError as e:
                answers.append(e.code)

        thread = threading.Thread(target=here)
        second.ask(job=shop.job_text(start, **more))
        thread.start()
        answers.append(second.answer())
        thread.join()
        assert all(answer in ({"U": 40, "DR": 20}, "JOB_BUSY") for answer in answers), answers
        assert answers.count("JOB_BUSY") < 2, answers
        assert shop.spark.table(f"{shop.schema}.out{start}").count() == 60


def test_two_processes_read_the_shards_of_a_stream(shop: Shop, second: Second) -> None:
    shop.orders(shards=2)
    shop.run("INSERT INTO {s}.orders SELECT id, 'a', id FROM range(9)", "DELETE FROM {s}.orders WHERE id > 4")
    reader = StreamReader(shop.spark)
    stream = reader.list_streams(f"{shop.schema}.orders")[0].stream_id
    first, other = reader.describe_stream(stream).shards
    second.ask(stream=stream, shard=other.id)
    here, there = records_of(shop.spark, stream, first.id), second.answer()
    for found in (here, there):
        assert found
        assert found == sorted(found, key=lambda record: record[:2])
    assert sorted(r[2:] for r in (*here, *there)) == sorted(
        [["PUT", i] for i in range(9)] + [["DELETE", i] for i in range(5, 9)]
    )
