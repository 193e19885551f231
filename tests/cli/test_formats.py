"""Values and rows as text."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import Row

from streamql.console.render.formats import WRITERS, double_text, json_text, text_of, unique

Point = Row("x", "y")


def written(output: str, names: list[str], rows: list[tuple[object, ...]]) -> str:
    out = io.StringIO()
    assert WRITERS[output](out, names, [False] * len(names), rows) == len(rows)
    return out.getvalue()


@pytest.mark.parametrize(
    ("value", "text", "as_json"),
    [
        (None, "NULL", "null"),
        (True, "true", "true"),
        (12, "12", "12"),
        (9223372036854775807, "9223372036854775807", "9223372036854775807"),
        (Decimal("1.500"), "1.500", "1.500"),
        (Decimal("0E-10"), "0.0000000000", "0.0000000000"),
        (Decimal("12345678901234567890.123456789"),) + ("12345678901234567890.123456789",) * 2,
        (1.0, "1.0", "1.0"),
        (float("nan"), "NaN", '"NaN"'),
        (float("-inf"), "-Infinity", '"-Infinity"'),
        (b"\x0a\xff", "0AFF", '"Cv8="'),
        (bytearray(b""), "", '""'),
        ('a"b\n', 'a"b\n', '"a\\"b\\n"'),
        ("日本", "日本", '"日本"'),
        ([1, None], "[1, NULL]", "[1, null]"),
        ({"a": [1.5], "b": None}, "{a -> [1.5], b -> NULL}", '{"a": [1.5], "b": null}'),
        ({1: True}, "{1 -> true}", '{"1": true}'),
        (Point(1, "b"), "{1, b}", '{"x": 1, "y": "b"}'),
        (Row("x", "x")(1, Point(None, b"\0")), "{1, {NULL, 00}}", '{"x": 1, "x_2": {"x": null, "y": "AA=="}}'),
        (date(2024, 2, 1), "2024-02-01", '"2024-02-01"'),
        (datetime.fromisoformat("2024-02-01T03:04:05.500000"), "2024-02-01 03:04:05.5", '"2024-02-01 03:04:05.5"'),
        (datetime.fromisoformat("2024-02-01T03:04:50"), "2024-02-01 03:04:50", '"2024-02-01 03:04:50"'),
        (timedelta(days=1), "1 day, 0:00:00", '"1 day, 0:00:00"'),
    ],
)
def test_values(value: object, text: str, as_json: str) -> None:
    assert text_of(value) == text
    assert json_text(value) == as_json
    json.loads(as_json)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-123456789.25, "-1.2345678925E8"),
        (1e20, "1.0E20"),
        (5e-324, "5.0E-324"),
    ],
)
def test_doubles_look_like_sparks(value: float, text: str) -> None:
    assert double_text(value) == text


@given(st.floats(allow_nan=False))
def test_doubles_lose_nothing(value: float) -> None:
    assert float(double_text(value).replace("Infinity", "inf")) == value


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"]),
        (["", ""], ["", "_2"]),
    ],
)
def test_unique(names: list[str], expected: list[str]) -> None:
    assert unique(names) == expected


@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "b"]), max_size=8))
def test_unique_is_unique(names: list[str]) -> None:
    result = unique(names)
    assert len(set(result)) == len(names)
    assert all(new == old or new.startswith(f"{old}_") for new, old in zip(result, names, strict=True))


def test_csv() -> None:
    rows: list[tuple[object, ...]] = [(None, "", "a,b"), (1, 'say "x"', "two\nlines"), (True, " x", Point(1, "y"))]
    text = written("csv", ["a", "b,c", "d"], rows)
    assert text == ('a,"b,c",d\n,"","a,b"\n1,"say ""x""","two\nlines"\ntrue," x","{""x"": 1, ""y"": ""y""}"\n')


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_csv_reads_back(rows: list[tuple[str, str]]) -> None:
    text = written("csv", ["a", "b"], list(rows))
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [list(row) for row in rows]


def test_tsv_is_a_line_a_row() -> None:
    text = written("tsv", ["a", "b"], [("x\ty", None), ("l\n\\", [1])])
    assert text == "a\tb\nx\\ty\tNULL\nl\\n\\\\\t[1]\n"


def test_json_is_a_line_a_row() -> None:
    text = written("json", ["a", "a"], [(1, "x\ny"), (None, Decimal("0.10"))])
    assert text == '{"a": 1, "a_2": "x\\ny"}\n{"a": null, "a_2": 0.10}\n'


def test_markdown() -> None:
    out = io.StringIO()
    WRITERS["markdown"](out, ["n", "a|b"], [True, False], [(1, "x\ny|z"), (None, "")])
    assert out.getvalue() == "| n | a\\|b |\n| ---: | --- |\n| 1 | x<br>y\\|z |\n| NULL |  |\n"


@pytest.mark.parametrize(
    ("output", "text"),
    [("csv", "a\n"), ("tsv", "a\n"), ("json", ""), ("markdown", "| a |\n| --- |\n")],
)
def test_no_rows(output: str, text: str) -> None:
    assert written(output, ["a"], []) == text
