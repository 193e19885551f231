"""One Spark session for all tests of a worker."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The embedded session over a directory of its own, small enough that two fit beside each other."""
    from streamql.sessions import session

    conf = {
        "spark.master": "local[2]",
        "spark.driver.memory": os.environ.get("STREAMQL_TEST_MEMORY", "2g"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM makes as many tasks, thousands else
    }
    made = session(tmp_path_factory.mktemp("streamql") / "data", conf)
    yield made
    made.stop()
