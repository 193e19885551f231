"""The texts of cell values, which read back as the same values."""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.features.tablestore.formats.values import Value, float_text, text_of, text_sql


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (-(2**63), "-9223372036854775808"),
        ("a\n'\"", "a\n'\""),
        ("", ""),
        (b"\x00\xff", "AP8="),
        (b"", ""),
        (Decimal("0.000000100"), "0.000000100"),
        (Decimal("1E+3"), "1000"),
        (Decimal("-12.50"), "-12.50"),
        (date(1, 2, 3), "0001-02-03"),
        (datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05"),  # noqa: DTZ001 - of TIMESTAMP_NTZ
        (datetime(2024, 1, 2, 3, 4, 5, 120_000), "2024-01-02 03:04:05.12"),  # noqa: DTZ001 - of TIMESTAMP_NTZ
        (datetime(2024, 1, 2, 3, 4, 5, 1, timezone(timedelta(hours=8))), "2024-01-01 19:04:05.000001Z"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0009999, "9.999E-4"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (123456789012.0, "1.23456789012E11"),
        (1e23, "1.0E23"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_texts(value: Value, text: str) -> None:
    assert text_of(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float) -> None:
    text = text_of(value)
    assert struct.pack("<d", float(text)) == struct.pack("<d", value)
    assert ("E" in text) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
    assert "." in text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back_and_are_no_longer_than_those_of_doubles(value: float) -> None:
    text = float_text(value)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)
    assert len(text) <= len(text_of(value))
    assert float_text(struct.unpack("<f", struct.pack("<f", 0.1))[0]) == "0.1"


def test_expressions_cast_what_the_cast_says_right_and_nothing_else() -> None:
    for data_type in ("string", "long", "decimal(10,2)", "double", "boolean", "date", "timestamp_ntz"):
        assert text_sql("`a`", data_type) == "CAST(`a` AS STRING)"
    assert text_sql("`a`", "binary") == "base64(`a`)"
    assert text_sql("`a`", "timestamp") == "__streamql_time_text(`a`)"
    for nested in ({"type": "struct"}, "variant"):
        assert text_sql("`a`", nested).startswith("to_json(`a`, map('ignoreNullFields', 'false'")
