"""A shop to export from; and Hypothesis without a deadline: a busy machine is not a fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from tests.tablestore.shop import Shop

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Shop]:
    schema = f"shop_{abs(hash(str(tmp_path))) % 10**9}"
    directory = tmp_path / "a place, 100%25 odd"
    directory.mkdir()
    yield Shop(spark, schema, directory)
    spark.sql(f"DROP SCHEMA {schema} CASCADE")
