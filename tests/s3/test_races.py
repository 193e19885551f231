"""Several processes commit to one log on S3 at the same time, and some answers are lost: no commit is lost, and none is there twice.

pytest tests/s3/test_races.py                       # hundreds of commits
STREAMQL_LONG=3000 pytest tests/s3/test_races.py    # so many of each process, and so many INSERTs of two drivers
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from tests.consume.support import ROOT, TIMEOUT_SECONDS, run, start_child
from tests.s3.support import IMPATIENT, S3, Store, versions
from tests.sample import IS_LONG, SEED, amount

PROCESSES = 3
COMMITS = amount(70, 2000)
INSERTS = amount(0, 200)
CHAOS = 0.15


def test_each_version_goes_to_one_process(s3: S3, store: Store) -> None:
    bucket = s3.bucket(store.hadoop, **IMPATIENT)
    log = f"s3a://{bucket}/t/_delta_log"
    command = [sys.executable, "-m", "tests.s3.racer", json.dumps(s3.settings(bucket, IMPATIENT)), log, str(COMMITS)]
    with s3.proxy.recording() as requests, s3.proxy.chaos(SEED, CHAOS):
        racers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
        said = [racer.communicate(timeout=TIMEOUT_SECONDS + COMMITS)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * PROCESSES
    owners = {version: racer.pid for racer, text in zip(racers, said, strict=True) for version in json.loads(text)}
    assert sum(len(json.loads(text)) for text in said) == len(owners) == PROCESSES * COMMITS
    assert versions(store.names(log)) == list(range(len(owners)))
    for version, pid in owners.items():
        assert store.read(f"{log}/{version:020}.json") == [f"{pid} {version}"]
    assert len([r for r in requests if r.status == 412]) > COMMITS / 4  # it was a race


@pytest.mark.skipif(not IS_LONG, reason="a short run has two drivers in test_consuming")
def test_inserts_of_two_drivers(s3: S3, store: Store, spark: SparkSession) -> None:
    bucket = s3.bucket(store.hadoop)
    table = f"delta.`s3a://{bucket}/t`"
    run(spark, f"CREATE TABLE {table} (driver STRING, n INT)")
    theirs = [f"INSERT INTO {table} VALUES ('theirs', {n})" for n in range(INSERTS)]
    with start_child(spark, "never", *theirs, conf=s3.child_conf(bucket)) as child, s3.proxy.chaos(SEED, CHAOS):
        assert child.stdout is not None
        assert child.stdout.readline() == "done\n"
        for n in range(INSERTS):
            run(spark, f"INSERT INTO {table} VALUES ('ours', {n})")
        said, errors = child.communicate(timeout=TIMEOUT_SECONDS + INSERTS)
        assert (child.returncode, said) == (0, "done\n" * (INSERTS - 1)), errors
    rows = run(spark, f"SELECT driver, n FROM {table}")
    assert sorted((r["driver"], r["n"]) for r in rows) == [(d, n) for d in ("ours", "theirs") for n in range(INSERTS)]
