"""Faults that are put into the code of keys as identity on purpose, one each: a test must find every one.

STREAMQL_LONG=1 pytest tests/keys/test_faults.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import Fault, assert_found
from tests.sample import IS_LONG

STREAMS = "tests/keys/test_histories.py::test_change_sets_by_key_are_the_differences_of_versions[0]"
NULLS = "tests/keys/test_consuming.py::test_null_is_the_same_value_and_the_same_key_as_null"
SOURCE = "features/keys/source"

FAULTS = (
    (
        Fault(
            f"{SOURCE}/plan.py",
            "if any(f.moved or any(abs(w) > 1 for w in f.weights.values()) for f in net.values()):",
            "if not net:",
        ),
        STREAMS,
    ),
    (
        Fault(
            f"{SOURCE}/changes.py",
            "self._rows(reading, removed, begin), self",
            "self._rows(reading, removed[:1], begin), self",
        ),
        NULLS,
    ),
    (
        Fault("extension/scala/keys/KeyedImages.scala", "EqualNullSafe(k, o): Expression", "EqualTo(k, o): Expression"),
        NULLS,
    ),
    (
        Fault(
            "extension/scala/changes/Values.scala",
            "EqualNullSafe(l, r) }",
            "org.apache.spark.sql.catalyst.expressions.EqualTo(l, r) }",
        ),
        NULLS,
    ),
)
"""The faults, each with the test that must show it: moves that are not counted; files of the begin that are left out; keys, and then
values, that are compared by `=`, for which NULL is never equal to NULL."""


def test_each_replaces_something() -> None:
    for fault, _ in FAULTS:
        fault.check()


if IS_LONG:

    @pytest.mark.parametrize(("fault", "test"), FAULTS)
    def test_a_fault_is_found(tmp_path: Path, fault: Fault, test: str) -> None:
        assert_found(fault, test, tmp_path)
