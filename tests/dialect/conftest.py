"""Runs tests over fixture files: a module says FIXTURES = {"test_name": "file.sql"}, the test takes `before` and `after`."""

from __future__ import annotations

import pytest

from .samples import load


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each block of the file that the module names for the function."""
    name = getattr(metafunc.module, "FIXTURES", {}).get(metafunc.function.__name__)
    if name is None:
        return
    pairs = load(name)
    ids = [" ".join(before.split())[:60] for before, _ in pairs]
    if "after" in metafunc.fixturenames:
        metafunc.parametrize(("before", "after"), pairs, ids=ids)
    else:
        metafunc.parametrize("before", [before for before, _ in pairs], ids=ids)
