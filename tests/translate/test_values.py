"""Functions and elements whose value would be another one in Spark."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import System, Translated
from streamql.features.translate.script import translate
from tests.translate.support import becomes

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
    # a VARIANT beside a literal or a cast
    (SNOWFLAKE, "v:a = 'x'", "CAST(v:a AS STRING) = 'x'"),
    (SNOWFLAKE, "5 < v:a", "5 < CAST(v:a AS DOUBLE)"),
    (SNOWFLAKE, "(v:a) = TRUE", "CAST((v:a) AS BOOLEAN) = TRUE"),
    (SNOWFLAKE, "v:a IN ('x', 'y')", "CAST(v:a AS STRING) IN ('x', 'y')"),
    (SNOWFLAKE, "v:a BETWEEN -1 AND 2", "CAST(v:a AS DOUBLE) BETWEEN -1 AND 2"),
    (SNOWFLAKE, "v['a'] = d::DATE", "CAST(VARIANT_GET(v, '$[\"a\"]') AS DATE) = CAST(d AS DATE)"),
    (SNOWFLAKE, "CONCAT(v:a, 'x')", "CONCAT(CAST(v:a AS STRING), 'x')"),
    (SNOWFLAKE, "UPPER(v:a) || v:b", "UPPER(CAST(v:a AS STRING)) || CAST(v:b AS STRING)"),
    (SNOWFLAKE, "COALESCE(v:a, 'x')", "COALESCE(CAST(v:a AS STRING), 'x')"),
    (SNOWFLAKE, "CASE v:a WHEN 'x' THEN v:b END", "CASE CAST(v:a AS STRING) WHEN 'x' THEN v:b END"),
    (SNOWFLAKE, "v:a::INT > 5", "CAST(v:a AS INT) > 5"),
    (DATABEND, "v:a = 'x'", "CAST(v:a AS STRING) = 'x'"),
    # arrays
    (SNOWFLAKE, "ARRAY_SIZE(v)", "ARRAY_SIZE(TRY_CAST(v AS ARRAY<VARIANT>))"),
    (SNOWFLAKE, "ARRAY_SIZE(SPLIT(a, ','))", "ARRAY_SIZE(SPLIT(a, CONCAT('\\\\Q', ',', '\\\\E')))"),
    (SNOWFLAKE, "ARRAY_CONTAINS('x'::VARIANT, v)", "ARRAY_CONTAINS(TRY_CAST(v AS ARRAY<STRING>), 'x')"),
    (SNOWFLAKE, "ARRAY_TO_STRING(v, ',')", "ARRAY_JOIN(TRY_CAST(v AS ARRAY<STRING>), ',', '')"),
    (SNOWFLAKE, "ARRAY_SLICE(ARRAY_CONSTRUCT(1, 2, 3), 1, 3)", "SLICE(ARRAY(1, 2, 3), 2, 2)"),
    (SNOWFLAKE, "ARRAY_POSITION(1, ARRAY_CONSTRUCT(1))", "(NULLIF(ARRAY_POSITION(ARRAY(1), 1), 0) - 1)"),
    (SNOWFLAKE, "ARRAYS_OVERLAP(ARRAY_CONSTRUCT(1), [2])", "ARRAYS_OVERLAP(ARRAY(1), ARRAY(2))"),
    (SNOWFLAKE, "OBJECT_KEYS(v)", "JSON_OBJECT_KEYS(TO_JSON(v))"),
    (DATABEND, "ARRAY_LENGTH(a)", "ARRAY_SIZE(a)"),
    (CLICKZETTA, "SIZE(a)", "SIZE(a)"),
    # regular expressions
    (SNOWFLAKE, "REGEXP_LIKE(a, 'x|y')", "REGEXP_LIKE(a, '^(?:x|y)$')"),
    (SNOWFLAKE, "a NOT RLIKE 'x'", "NOT REGEXP_LIKE(a, '^(?:x)$')"),
    (SNOWFLAKE, "REGEXP_LIKE(a, b)", "REGEXP_LIKE(a, CONCAT('^(?:', b, ')$'))"),
    (SNOWFLAKE, "REGEXP_LIKE(a, 'x', 'i')", "REGEXP_LIKE(a, '^(?:(?i)x)$')"),
    (SNOWFLAKE, "REGEXP_SUBSTR(a, 'x')", "REGEXP_SUBSTR(a, 'x')"),
    (SNOWFLAKE, "REGEXP_SUBSTR(a, '(x)', 1, 1, 'ie')", "NULLIF(REGEXP_EXTRACT(a, '(?i)(x)', 1), '')"),
    (SNOWFLAKE, "REGEXP_REPLACE(a, '(x)', '\\\\1$', 1, 0, 'i')", "REGEXP_REPLACE(a, '(?i)(x)', '$1\\\\$', 1)"),
    (SNOWFLAKE, "REGEXP_COUNT(a, 'x', 1, 'i')", "REGEXP_COUNT(a, '(?i)x')"),
    (DATABEND, "a REGEXP 'x'", "REGEXP_LIKE(a, 'x')"),
    (CLICKZETTA, "a RLIKE 'x'", "REGEXP_LIKE(a, 'x')"),
    # dates and their formats
    (SNOWFLAKE, "TO_TIMESTAMP(a, 'YYYY-MM-DD HH24:MI:SS.FF3')", "TO_TIMESTAMP(a, 'yyyy-M-d H:m:s.SSS')"),
    (SNOWFLAKE, "TO_VARCHAR(a, 'YYYY-MM-DD\"T\"HH24.FF')", "DATE_FORMAT(a, 'yyyy-MM-dd\\'T\\'HH.SSSSSSSSS')"),
    (SNOWFLAKE, "TO_VARCHAR(a, 'HH24:MI TZH')", "DATE_FORMAT(a, 'HH:mm X')"),
    (SNOWFLAKE, "TO_TIMESTAMP(a, 'AUTO')", "CAST(a AS TIMESTAMP)"),
    (SNOWFLAKE, "TRY_TO_DATE(a, 'AUTO')", "TRY_CAST(a AS DATE)"),
    (DATABEND, "DATE_FORMAT(a, '%Y-%mT%H')", "DATE_FORMAT(a, 'yyyy-MM\\'T\\'HH')"),
    (CLICKZETTA, "DATE_FORMAT(a, \"yyyy'T'HH\")", "DATE_FORMAT(a, 'yyyy\\'T\\'HH')"),
    (SNOWFLAKE, "SYSDATE()", "CAST(TO_UTC_TIMESTAMP(CURRENT_TIMESTAMP(), CURRENT_TIMEZONE()) AS TIMESTAMP_NTZ)"),
    (SNOWFLAKE, "CURRENT_TIME", "DATE_FORMAT(CURRENT_TIMESTAMP(), 'HH:mm:ss')"),
    (DATABEND, "LOCALTIME", "DATE_FORMAT(CURRENT_TIMESTAMP(), 'HH:mm:ss')"),
    (CLICKZETTA, "CURRENT_TIME()", "DATE_FORMAT(CURRENT_TIMESTAMP(), 'HH:mm:ss')"),
    (SNOWFLAKE, "WEEKOFYEAR(d)", "WEEKOFYEAR(d)"),
    (SNOWFLAKE, "DATEADD(month, 1, d::DATE)", "CAST(DATEADD(MONTH, 1, CAST(d AS DATE)) AS DATE)"),
    (SNOWFLAKE, "DATE_TRUNC('month', CURRENT_DATE)", "CAST(DATE_TRUNC('MONTH', CURRENT_DATE) AS DATE)"),
    (SNOWFLAKE, "DATEADD(hour, 1, d::DATE)", "DATEADD(HOUR, 1, CAST(d AS DATE))"),
    (SNOWFLAKE, "a + INTERVAL '1 day, 2 hours'", "a + INTERVAL '1 day  2 hours'"),
    # others
    (SNOWFLAKE, "SHA2(a)", "SHA2(a, 256)"),
    (SNOWFLAKE, "COLLATE(a, 'en')", "a COLLATE en"),
    (SNOWFLAKE, "INSERT(a, 1, 2, 'x')", "OVERLAY(a PLACING 'x' FROM 1 FOR 2)"),
    (SNOWFLAKE, "OCTET_LENGTH(a)", "OCTET_LENGTH(a)"),
    (SNOWFLAKE, "HLL(a)", "APPROX_COUNT_DISTINCT(a)"),
    (DATABEND, "2 ^ 3", "POWER(2, 3)"),
    (DATABEND, "bit_xor(2, 3)", "2 ^ 3"),
    (CLICKZETTA, "CAST('{}' AS JSON)", "PARSE_JSON('{}')"),
    (CLICKZETTA, "json_extract_string(v, '$.a')", "TRY_VARIANT_GET(v, '$.a', 'STRING')"),
    (CLICKZETTA, "json_extract_int(v, '$.a') = 3", "TRY_VARIANT_GET(v, '$.a', 'INT') = 3"),
    (CLICKZETTA, "TRY_CAST('{}' AS JSON)", "TRY_PARSE_JSON('{}')"),
]

NOTES = [
    (
        SNOWFLAKE,
        "GREATEST(a, b)",
        "GREATEST returns NULL if an argument is NULL in Snowflake; Spark's GREATEST skips NULL",
    ),
    (SNOWFLAKE, "v:a = b", "Spark neither compares, groups, sorts nor calculates with a VARIANT: cast v:a to a type"),
    (SNOWFLAKE, "DISTINCT v:a AS b", "cast v:a to a type"),
    (SNOWFLAKE, "COALESCE(v:a, x)", "cast v:a to a type"),
    (SNOWFLAKE, "IFF(v:a, 1, 0)", "cast v:a to a type"),
    (SNOWFLAKE, "TO_TIMESTAMP(v:a), NOT v:b", "cast v:a, v:b to a type"),
    (SNOWFLAKE, "SUM(v:a), MAX(v:b)", "cast v:a, v:b to a type"),
    (SNOWFLAKE, "ARRAY_APPEND(a, 1)", "Spark's ARRAY_APPEND takes an ARRAY: if a is a VARIANT"),
    (SNOWFLAKE, "ARRAY_CONTAINS(x::VARIANT, v)", "Spark's ARRAY_CONTAINS takes an ARRAY"),
    (SNOWFLAKE, "ARRAY_INTERSECTION([1], [1])", "ARRAY_INTERSECT keeps a value once in Spark"),
    (SNOWFLAKE, "TO_ARRAY(v)", "if v holds an array already, write v"),
    (SNOWFLAKE, "ADD_MONTHS(d, 1)", "ADD_MONTHS of the last day of a month"),
    (SNOWFLAKE, "a::TIME", "a cast to TIME became a cast to STRING"),
    (SNOWFLAKE, "HOUR(CURRENT_TIME())", "CURRENT_TIME became a STRING: Spark has the type TIME only if"),
    (CLICKZETTA, "make_time(1, 2, 3)", "make_time: Spark has the type TIME only if spark.sql.timeType.enabled is true"),
    (SNOWFLAKE, "INITCAP(a)", "Spark's INITCAP begins words behind spaces only"),
    (SNOWFLAKE, "TYPEOF(v:a)", "SCHEMA_OF_VARIANT names its type"),
    (SNOWFLAKE, "HASH(a)", "Spark's HASH returns other numbers"),
    (DATABEND, "a::JSON", "a cast to JSON became PARSE_JSON, which takes a text"),
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


@pytest.mark.parametrize(
    "function",
    [
        "TRY_CAST(a AS INT)",
        "GREATEST_IGNORE_NULLS(a, b)",
        "GREATEST(1, 2)",
        "TO_NUMBER(v:a), NVL2(v:b, 1, 2), IFF(a, v:c, v:d)",
        "COALESCE(v:a, v:b), v:c, COUNT(v:d), LAG(v:e) OVER (ORDER BY f), TO_JSON(v:g), v:h IS NULL",
    ],
)
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


FLATTENED = [
    ("SELECT f.seq, f.path, f.value FROM t, LATERAL FLATTEN(INPUT => v) f", "no seq or path"),
    ("SELECT this FROM t, TABLE(FLATTEN(v))", "no this"),
    (
        "SELECT * FROM t, LATERAL FLATTEN(INPUT => v) f",
        "* shows index, key and value of FLATTEN, and no seq, path or this",
    ),
    ("SELECT f.* FROM t, LATERAL FLATTEN(INPUT => v) f", "* shows index, key and value of FLATTEN"),
    ("SELECT t.path, t.*, f.value FROM t, LATERAL FLATTEN(INPUT => v) f", ""),
    ("SELECT COUNT(*), f.value:x::INT FROM t, LATERAL FLATTEN(INPUT => v) f GROUP BY ALL", ""),
]


@pytest.mark.parametrize(("query", "note"), FLATTENED)
def test_columns_of_flatten_that_spark_does_not_have(query: str, note: str) -> None:
    result = translate(f"{query};", SNOWFLAKE).pieces[0].result
    assert isinstance(result, Translated)
    assert bool(result.notes) is bool(note)
    assert not note or note in result.notes[0]


def test_flatten_in_clickzetta() -> None:
    script = "SELECT p.path, p.value::STRING FROM r, LATERAL FLATTEN(INPUT => r.v:a) p;"
    assert becomes(CLICKZETTA, script) == [
        "-- note: variant_explode has the columns index, key and value of FLATTEN, and no path",
        "SELECT p.path, CAST(p.value AS STRING) FROM r CROSS JOIN LATERAL VARIANT_EXPLODE(r.v:a) AS p(index, key, value);",
    ]


def test_a_column_of_the_script_is_compared_by_its_type() -> None:
    script = "CREATE TABLE t (v VARIANT, d DATE, s STRING); SELECT v = 'x', s = 'x', DATEADD(day, 1, d) FROM t;"
    assert translate(script, SNOWFLAKE).text.endswith(
        "SELECT CAST(v AS STRING) = 'x', s = 'x', CAST(DATEADD(DAY, 1, d) AS DATE) FROM t;\n"
    )


def test_an_assignment_does_not_compare() -> None:
    script = (
        "CREATE TABLE p (id INT, a STRING);\n"
        "MERGE INTO p USING (SELECT v:id AS id, v:a AS a FROM t) AS s ON p.id = s.id::INT "
        "WHEN MATCHED THEN UPDATE SET p.a = s.a;"
    )
    assert not any(line.startswith("-- note") for line in becomes(SNOWFLAKE, script))


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
