"""A schema of its own for each test, and plans that are not compiled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streamql.consume import session_transactions
from tests.dynamic.support import DynamicPlace
from tests.histories.recording import conf
from tests.small import INTERPRETED


@pytest.fixture(scope="module")
def quick(spark: SparkSession) -> Iterator[None]:
    """Plans are interpreted, and shuffles are real ones."""
    with conf(spark, (*INTERPRETED, ("spark.sql.shuffle.partitions", "2"))):
        yield


@pytest.fixture
def place(spark: SparkSession) -> Iterator[DynamicPlace]:
    """Give a schema with the tables t and u, which track changes. Afterwards no stream and no dynamic table of it is left."""
    made = DynamicPlace(spark)
    with conf(spark, INTERPRETED):  # compiling a plan takes longer than running it on a few rows
        made.open()
        try:
            yield made
        finally:
            session_transactions.abandon(spark)
            made.close()
