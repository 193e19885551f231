"""One S3 server for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.s3.proxy import Proxy
from tests.s3.server import Server
from tests.s3.support import IMPATIENT, S3, Store


@pytest.fixture(scope="session")
def shared_s3() -> Iterator[S3]:
    """The worker's server."""
    with Server() as server, Proxy(server.port) as proxy:
        yield S3(server, proxy)


@pytest.fixture
def s3(shared_s3: S3) -> Iterator[S3]:
    """The worker's server, which no test leaves with a plan."""
    yield shared_s3
    shared_s3.proxy.plan()


@pytest.fixture
def store(spark: SparkSession) -> Store:
    """The log store in the worker's JVM."""
    return Store(spark._jvm, spark.sparkContext._jsc.hadoopConfiguration())


@pytest.fixture
def log(s3: S3, store: Store) -> str:
    """The log's directory in a bucket of its own, of an impatient client."""
    return f"s3a://{s3.bucket(store.hadoop, **IMPATIENT)}/t/_delta_log"
