"""A schema of its own for each test, and plans that are not compiled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streamql.consume import session_transactions
from tests.histories.recording import conf
from tests.small import INTERPRETED
from tests.views.support import Place


@pytest.fixture
def place(spark: SparkSession) -> Iterator[Place]:
    """Give a schema with the tables t and u, which track changes. Afterwards no stream of it is left."""
    made = Place(spark)
    with conf(spark, INTERPRETED):  # compiling a plan takes longer than running it on a few rows
        made.open()
        try:
            yield made
        finally:
            session_transactions.abandon(spark)
            made.close()
