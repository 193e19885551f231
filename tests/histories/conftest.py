"""Options of the long mode, and where tests here make their tables. The session is the one of tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.sample import sample
from tests.small import COMPILED, INTERPRETED

from .recording import SEVERAL_TASKS, conf

FEW_ROWS = ("test_by_commit", "test_nulls", "test_refusals", "test_scenarios", "test_values")
"""Files whose tables are so small that compiling takes most of the time. Which of them is compiled is drawn; in a long run all are."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known only where pytest is given this directory; STREAMQL_LONG works everywhere."""
    parser.addoption("--long", type=int, default=0, metavar="WINDOWS", help="histories: check at least so many windows")


@pytest.fixture(scope="module", autouse=True)
def as_in_production(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Shuffles are real ones here, and planned anew. Plans are compiled: of FEW_ROWS, those of one file."""
    name = request.path.stem
    is_compiled = name not in FEW_ROWS or name in sample("compiled files of histories", FEW_ROWS, 1)
    with conf(spark, (*SEVERAL_TASKS, *COMPILED, *(() if is_compiled else INTERPRETED))):
        yield


@pytest.fixture
def table_path(tmp_path: Path) -> str:
    """Where a test makes its table: an awkward place on purpose."""
    return str(tmp_path / "a table, 100%25 odd")
