"""Options of the long mode, and where tests here make their tables. The session is the one of tests/conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known only where pytest is given this directory; STREAMQL_LONG works everywhere."""
    parser.addoption("--long", type=int, default=0, metavar="WINDOWS", help="histories: check at least so many windows")


@pytest.fixture
def table_path(tmp_path: Path) -> str:
    """Where a test makes its table: an awkward place on purpose."""
    return str(tmp_path / "a table, 100%25 odd")
