"""A cluster of several machines: driver and executors share no disk, all data is on S3, and workers are lost while statements run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from examples.flights import data, scripts
from tests.consume.support import TRACKED
from tests.s3.cluster import Cluster, Worker
from tests.s3.driver import Driver
from tests.s3.proxy import Fault
from tests.s3.support import S3
from tests.small import INTERPRETED, QUICK_JAVA, SHORT_LIVED

FLIGHTS_PER_MONTH = 2_000
STATEMENT_SECONDS_MAX = 120
STREAMS = ("flights_to_replica", "flights_to_audit")

SETTINGS = {
    **SHORT_LIVED,
    **dict(INTERPRETED),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "768m",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.sql.shuffle.partitions": "2",  # a task for each worker
    "spark.sql.adaptive.enabled": "false",
}
IN_MEMORY = {"fast.upload.buffer": "array"}
"""Of S3A: what is sent is not written to a disk before."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master."""
    with Cluster(tmp_path) as started:
        yield started


def script(name: str) -> list[str]:
    """The statements of a script of the example."""
    return list(scripts.script(name).statements)


def tables() -> list[str]:
    """The statements that make the tables and streams of two of the example's consumers."""
    made = {text.split()[2]: text for text in script("tables") if text.startswith("CREATE TABLE")}
    flights = made["flights"]
    replica = flights.replace("CREATE TABLE flights ", "CREATE TABLE flights_replica ")
    streams = [text for text in script("streams") if text.split()[2] in STREAMS]
    return [made["landing"], f"{flights} {TRACKED}", replica, made["flight_audit"], *streams]


class Job:
    """The flights in a lake on S3, and the driver that works on them."""

    def __init__(self, s3: S3, bucket: str, driver: Driver) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._driver = driver
        self._months: Mapping[int, list[str]] = data.months(data.flights_archive())
        self._loaded = 0

    def prepare(self) -> None:
        """Make tables and streams."""
        self._driver.run(*tables())

    def load(self, month: int) -> None:
        """Load some flights of a month."""
        header, *lines = self._months[month]
        chosen = lines[:: len(lines) // FLIGHTS_PER_MONTH + 1]
        content = "".join([header, *chosen]).encode()
        self._s3.server.put(f"{self._bucket}/lake/landing/arrived={month}/flights.csv", content)
        self._driver.run(*script("load_month"))
        self._loaded += len(chosen)

    def change(self) -> None:
        """Correct some flights and withdraw some."""
        self._driver.run(*script("late_arrivals"), *script("withdrawn"))

    def consume(self, name: str, target: str, lost: Worker | None = None) -> None:
        """Run a consumer. `lost`: the worker that is killed while an executor writes a file of the target."""
        if lost is None:
            self._driver.run(*script(name))
            return
        self._s3.proxy.plan(Fault("PUT", rf"/{target}/part-.*\.parquet", is_held=True))
        self._driver.begin(*script(name))
        self._s3.proxy.wait_for_faults(STATEMENT_SECONDS_MAX)
        lost.kill()
        self._s3.proxy.plan()
        self._driver.end()

    def check(self) -> None:
        """Each change has arrived once."""
        source, target = self._driver.run(*script("prove_replica"))
        assert (source["rows"], source["fingerprint"]) == (target["rows"], target["fingerprint"])
        audit = "SELECT count(*) AS rows, count(DISTINCT flight_id) AS flights FROM flight_audit"
        assert self._driver.run(audit) == [{"rows": self._loaded, "flights": self._loaded}]

    def check_ledger(self) -> None:
        """The intervals of each stream follow one another, and each is in the ledger once."""
        ledger = self._driver.run("SELECT * FROM streamql.consumptions ORDER BY sequence")
        assert {(row["outcome"], row["guarantee"]) for row in ledger} == {("CONSUMED", "exactly_once")}
        for stream in STREAMS:
            rows = [row for row in ledger if row["stream"] == f"default.{stream}"]
            ends = [row["through_version"] for row in rows]
            assert [row["from_version"] for row in rows] == [0, *ends[:-1]]
            assert self._driver.run(f"SELECT stream_has_data('{stream}') AS has_data") == [{"has_data": False}]


def test_flights_arrive_once_though_workers_are_lost(s3: S3, cluster: Cluster, tmp_path: Path) -> None:
    first, second = cluster.add_worker(), cluster.add_worker()
    bucket = s3.new_bucket()
    conf = {
        **SETTINGS,
        **s3.child_conf(bucket, IN_MEMORY),
        "spark.master": cluster.url,
        "spark.sql.warehouse.dir": f"s3a://{bucket}/lake",
    }
    with Driver(tmp_path / "driver" / "data", conf) as driver:
        job = Job(s3, bucket, driver)
        job.prepare()
        job.load(month=1)
        job.consume("replica", "flights_replica")
        job.consume("audit", "flight_audit", lost=first)
        job.check()
        third = cluster.add_worker()
        job.load(month=2)
        job.change()
        third.wait()
        job.consume("replica", "flights_replica", lost=second)
        job.consume("audit", "flight_audit")
        job.check()
        job.check_ledger()
    said = driver.errors.splitlines()
    assert len(said) == 2, said
    assert all("Lost executor" in line for line in said)
    for worker in (first, second, third):
        (executor,) = worker.executors
        assert list(executor.glob("streamql-extension-*.jar")) != []
    assert [path for path in tmp_path.rglob("*") if path.suffix in (".parquet", ".crc")] == []
