"""Functions and elements whose value would be another one in Spark."""

from __future__ import annotations

import pytest

from streamql.translate import System, Translated, translate

SNOWFLAKE, DATABEND, CLICKZETTA = System

EXPRESSIONS = [
    # what cannot be converted is NULL
    (SNOWFLAKE, "TRY_PARSE_JSON(c)", "TRY_PARSE_JSON(c)"),
    (SNOWFLAKE, "TRY_TO_DATE(c)", "TRY_TO_DATE(c)"),
    (SNOWFLAKE, "TRY_TO_DATE(c, 'YYYYMMDD')", "TRY_TO_DATE(c, 'yyyyMMdd')"),
    (SNOWFLAKE, "TRY_TO_NUMBER(c)", "TRY_CAST(c AS DECIMAL(38, 0))"),
    (SNOWFLAKE, "TRY_TO_DECIMAL(c, 10, 2)", "TRY_CAST(c AS DECIMAL(10, 2))"),
    (SNOWFLAKE, "TRY_TO_NUMBER(c, '99')", "CAST(TRY_TO_NUMBER(c, '99') AS DECIMAL(38, 0))"),
    (SNOWFLAKE, "TRY_TO_TIMESTAMP_NTZ(c, 'YYYYMMDD')", "TRY_TO_TIMESTAMP(c, 'yyyyMMdd')"),
    (SNOWFLAKE, "TRY_TO_TIMESTAMP_LTZ(c)", "TRY_CAST(c AS TIMESTAMP_LTZ)"),
    (SNOWFLAKE, "TRY_TO_BOOLEAN(c)", "TRY_CAST(c AS BOOLEAN)"),
    (SNOWFLAKE, "TRY_TO_BINARY(c)", "TRY_TO_BINARY(c)"),
    (SNOWFLAKE, "TO_NUMBER(c, '99')", "CAST(TO_NUMBER(c, '99') AS DECIMAL(38, 0))"),
    (DATABEND, "TRY_TO_DATE(c)", "TRY_TO_DATE(c)"),
    # days of the week
    (SNOWFLAKE, "DAYOFWEEK(d)", "(DAYOFWEEK(d) - 1)"),
    (SNOWFLAKE, "DAYOFWEEKISO(d)", "(WEEKDAY(d) + 1)"),
    (SNOWFLAKE, "DATE_PART(dow, d)", "(DAYOFWEEK(d) - 1)"),
    (SNOWFLAKE, "EXTRACT(dayofweek_iso FROM d)", "(WEEKDAY(d) + 1)"),
    (DATABEND, "TO_DAY_OF_WEEK(d)", "(WEEKDAY(d) + 1)"),
    (DATABEND, "DAYOFWEEK(d)", "(DAYOFWEEK(d) - 1)"),
    (CLICKZETTA, "DAYOFWEEK(d)", "DAYOFWEEK(d)"),
    # boundaries between two times
    (SNOWFLAKE, "DATEDIFF(day, a, b)", "DATEDIFF(b, a)"),
    (SNOWFLAKE, "DATEDIFF('month', a, b)", "DATEDIFF(MONTH, DATE_TRUNC('MONTH', a), DATE_TRUNC('MONTH', b))"),
    (SNOWFLAKE, "TIMESTAMPDIFF(hour, a, b)", "DATEDIFF(HOUR, DATE_TRUNC('HOUR', a), DATE_TRUNC('HOUR', b))"),
    (DATABEND, "DATE_DIFF(day, a, b)", "DATEDIFF(b, a)"),
    (DATABEND, "DATE_BETWEEN(month, a, b)", "DATEDIFF(MONTH, a, b)"),
    (CLICKZETTA, "DATEDIFF(a, b)", "DATEDIFF(a, b)"),
    (CLICKZETTA, "DATEDIFF(DAY, a, b)", "DATEDIFF(DAY, a, b)"),
    # objects
    (SNOWFLAKE, "OBJECT_CONSTRUCT(*)", "TO_VARIANT_OBJECT(STRUCT(*))"),
    (SNOWFLAKE, "OBJECT_CONSTRUCT('a b', a)::VARIANT", "TO_VARIANT_OBJECT(NAMED_STRUCT('a b', a))"),
    (SNOWFLAKE, "OBJECT_CONSTRUCT(k, v)", "TO_VARIANT_OBJECT(MAP(k, v))"),
    (SNOWFLAKE, "OBJECT_CONSTRUCT()", "PARSE_JSON('{}')"),
    (DATABEND, "OBJECT_CONSTRUCT('a', a)", "TO_VARIANT_OBJECT(NAMED_STRUCT('a', a))"),
    (DATABEND, "{'a': 1}", "MAP('a', 1)"),
    # Databend: arguments and order of its own
    (DATABEND, "array_contains([1], 1)", "array_contains(ARRAY(1), 1)"),
    (DATABEND, "DATE_FORMAT(d, '%Y-%m')", "DATE_FORMAT(d, 'yyyy-MM')"),
    (DATABEND, "SPLIT(a, '-')[1]", "GET(SPLIT(a, CONCAT('\\\\Q', '-', '\\\\E')), 0)"),
    (DATABEND, "row_number() OVER (ORDER BY a DESC)", "row_number() OVER (ORDER BY a DESC)"),
    (DATABEND, "row_number() OVER (ORDER BY a)", "ROW_NUMBER() OVER (ORDER BY a NULLS LAST)"),
    # elements of a VARIANT
    (SNOWFLAKE, "v['a']['b'][0]", 'VARIANT_GET(v, \'$["a"]["b"][0]\')'),
    (SNOWFLAKE, "v['a'].b", 'VARIANT_GET(v, \'$["a"]["b"]\')'),
    (SNOWFLAKE, "PARSE_JSON(v['a'])['b']", "VARIANT_GET(PARSE_JSON(VARIANT_GET(v, '$[\"a\"]')), '$[\"b\"]')"),
    (SNOWFLAKE, "a[0]", "VARIANT_GET(a, '$[0]')"),
    (SNOWFLAKE, "GET(v, 'a')", "VARIANT_GET(v, '$[\"a\"]')"),
    (SNOWFLAKE, "a::ARRAY", "CAST(a AS VARIANT)"),
    (SNOWFLAKE, "[1, 2][0]", "GET(ARRAY(1, 2), 0)"),
    (CLICKZETTA, "PARSE_JSON(x)['a']", "VARIANT_GET(PARSE_JSON(x), '$[\"a\"]')"),
    (CLICKZETTA, "m[0]", "m[0]"),
]

NOTES = [
    (
        SNOWFLAKE,
        "GREATEST(a, b)",
        "GREATEST returns NULL if an argument is NULL in Snowflake; Spark's GREATEST skips NULL",
    ),
    (DATABEND, "LEAST(a, b)", "LEAST returns NULL if an argument is NULL in Databend; Spark's LEAST skips NULL"),
    (SNOWFLAKE, "OBJECT_CONSTRUCT('a', a)", "an object keeps the fields whose value is NULL"),
    (SNOWFLAKE, "v[i]", "Spark needs variant_get, whose path is a literal"),
    (DATABEND, "arr[1]", "Databend counts the elements of an ARRAY from 1, Spark from 0"),
    (CLICKZETTA, "d['a']", "d['a'] was kept: if it reads a VARIANT, write VARIANT_GET(d, '$[\"a\"]')"),
]


@pytest.mark.parametrize(("system", "source", "expected"), EXPRESSIONS)
def test_a_value_stays_the_same(system: System, source: str, expected: str) -> None:
    assert translate(f"SELECT {source} AS x FROM t;", system).text.splitlines()[-1] == f"SELECT {expected} AS x FROM t;"


@pytest.mark.parametrize(("system", "source", "note"), NOTES)
def test_a_value_that_differs_has_a_note(system: System, source: str, note: str) -> None:
    result = translate(f"SELECT {source} FROM t;", system).pieces[0].result
    assert isinstance(result, Translated)
    assert any(note in one for one in result.notes), result.notes


@pytest.mark.parametrize("function", ["TRY_CAST(a AS INT)", "GREATEST_IGNORE_NULLS(a, b)", "GREATEST(1, 2)"])
def test_what_is_the_same_has_no_note(function: str) -> None:
    result = translate(f"SELECT {function} FROM t;", SNOWFLAKE).pieces[0].result
    assert isinstance(result, Translated)
    assert result.notes == ()


@pytest.mark.parametrize(
    ("system", "column", "source", "expected"),
    [
        (DATABEND, "v VARIANT", "v['a'][0]", "VARIANT_GET(v, '$[\"a\"][0]')"),
        (DATABEND, "v ARRAY(INT)", "v[1]", "GET(v, 0)"),
        (DATABEND, "v ARRAY(INT)", "v[i]", "GET(v, (i) - 1)"),
        (DATABEND, "v MAP(STRING, INT)", "v['a']", "v['a']"),
        (CLICKZETTA, "v JSON", "v['a']", "VARIANT_GET(v, '$[\"a\"]')"),
        (CLICKZETTA, "v STRUCT<a: INT>", "v['a']", "v['a']"),
        (SNOWFLAKE, "v MAP(VARCHAR, INT)", "v['a']", "v['a']"),
    ],
)
def test_types_of_columns_count(system: System, column: str, source: str, expected: str) -> None:
    piece = translate(f"CREATE TABLE t (id INT, {column}); SELECT {source} AS x FROM t;", system).pieces[1]
    assert isinstance(piece.result, Translated)
    assert piece.result == Translated((f"SELECT {expected} AS x FROM t",))


def test_explode_is_spark_s() -> None:
    """What ClickZetta calls EXPLODE is Spark's function, with the columns that the statement names."""
    statement = "SELECT e.id, s.skill FROM e LATERAL VIEW OUTER EXPLODE(e.skills) s AS skill;\n"
    assert translate(statement, CLICKZETTA).text == statement


def test_flatten_of_an_array() -> None:
    script = "SELECT f.value FROM t, LATERAL FLATTEN(INPUT => ARRAY_CONSTRUCT(1, 2)) f;"
    assert translate(script, SNOWFLAKE).text == (
        "SELECT f.value FROM t, LATERAL VARIANT_EXPLODE(CAST(ARRAY(1, 2) AS VARIANT)) AS f(index, key, value);\n"
    )


def test_functions_of_variables_and_points_have_notes() -> None:
    script = "SET q = (SELECT zorro(1)); CREATE STREAM s ON TABLE t AT (TIMESTAMP => zorro(2)); SELECT a FROM t AT (OFFSET => zorro(3));"
    for piece in translate(script, SNOWFLAKE).pieces:
        assert isinstance(piece.result, Translated)
        assert piece.result.notes == ("Spark has no function zorro: define one, or use another",)


@pytest.mark.parametrize(
    ("point", "has_note"),
    [
        ("'2024-01-01 00:00:00'", True),
        ("'2024-01-01'::TIMESTAMP", True),
        ("'2024-01-01 00:00:00 +0100'::TIMESTAMP_TZ", False),
        ("'2024-01-01 00:00:00'::TIMESTAMP_LTZ", False),
        ("'2024-01-01T00:00:00Z'::TIMESTAMP", False),
        ("CURRENT_TIMESTAMP()", False),
    ],
)
def test_a_point_without_a_zone(point: str, has_note: bool) -> None:
    """Snowflake reads such a time as UTC."""
    pieces = translate(f"SELECT a FROM t AT (TIMESTAMP => {point});" * 2, SNOWFLAKE).pieces
    notes = [note for piece in pieces if isinstance(piece.result, Translated) for note in piece.result.notes]
    assert len(notes) == (1 if has_note else 0)
    assert all("UTC" in note for note in notes)
