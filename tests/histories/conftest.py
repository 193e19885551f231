"""Options of the long mode, and where tests here make their tables. The session is the one of tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.small import COMPILED

from .recording import SEVERAL_TASKS, conf


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known only where pytest is given this directory; STREAMQL_LONG works everywhere."""
    parser.addoption("--long", type=int, default=0, metavar="WINDOWS", help="histories: check at least so many windows")


@pytest.fixture(scope="module", autouse=True)
def as_in_production(spark: SparkSession) -> Iterator[None]:
    """Shuffles are real ones here, and plans are compiled."""
    with conf(spark, (*SEVERAL_TASKS, *COMPILED)):
        yield


@pytest.fixture
def table_path(tmp_path: Path) -> str:
    """Where a test makes its table: an awkward place on purpose."""
    return str(tmp_path / "a table, 100%25 odd")
