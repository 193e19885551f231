"""Names of topics for the tests of Kafka, and schemas with a connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from pyspark.sql import SparkSession

from streamql.consume import session_transactions
from tests.kafka.broker import Broker
from tests.kafka.support import Place

_numbers = count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Give a function that returns a fresh topic name at each call. It does not create the topic."""
    name = re.sub(r"\W+", "_", request.node.name).strip("_")[:100]
    return lambda: f"{name}_{next(_numbers)}"


@pytest.fixture
def place(spark: SparkSession, broker: Broker) -> Iterator[Place]:
    """Give a schema of its own with a connection to the worker's broker."""
    made = Place(spark, broker)
    made.open()
    try:
        yield made
    finally:
        session_transactions.abandon(spark)
        made.close()
