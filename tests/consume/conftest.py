"""What every test of consumption leaves behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamql.consume import session_transactions


@pytest.fixture(autouse=True)
def no_open_transaction(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that fails inside a transaction must not let those behind it fail too."""
    yield
    if "spark" in request.fixturenames:
        session_transactions.abandon(request.getfixturevalue("spark"))
