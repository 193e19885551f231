"""Random statements in random spellings, random damage, and the prefilter: properties instead of examples."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamql.dialect import explain_rejected, might_be_ours, parse, quote_string, rewrite, rewrite_rejected, split
from streamql.dialect.prefilter import _pattern
from streamql.dialect.statements import CreateStream, Statement
from streamql.errors import StreamqlError
from streamql.model import StreamMode

from .samples import columns_of, is_asked_for, is_stream, load
from .spellings import spelled
from .test_dynamic import PARSED as DYNAMIC
from .test_external import PARSED
from .test_parse import CREATED, OTHERS, without_spans

FILES = (
    "sparks.sql",
    "rejected.sql",
    "rejected_dynamic.sql",
    "rewrites.sql",
    "consumes.sql",
    "rewritten_rejects.sql",
    "hopeless.sql",
    "hints.sql",
    "no_hints.sql",
)
TEXTS = [text for text, _ in CREATED + OTHERS + PARSED + DYNAMIC] + [
    before for name in FILES for before, _ in load(name)
]


@settings(max_examples=600, deadline=None)
@given(spelled())
def test_every_spelling_reads_back(case: tuple[Statement, str]) -> None:
    statement, text = case
    assert without_spans(parse(text)) == statement
    assert might_be_ours(text)
    assert [f.terminated for f in split(text + ";")] == [True]


# --- damage


def calls() -> dict[str, Callable[[str], object]]:
    return {
        "parse": parse,
        "rewrite": lambda text: rewrite(text, is_stream, columns_of),
        "rewrite_rejected": lambda text: rewrite_rejected(text, columns_of),
        "explain_rejected": explain_rejected,
        "split": split,
    }


def check_total(text: str) -> None:
    """No error but ours, with a place in the text; and the prefilter lets through whatever got an answer."""
    for name, call in calls().items():
        answer: object
        try:
            answer = call(text)
        except StreamqlError as error:
            answer = error
        if isinstance(answer, StreamqlError):
            check_place(answer, text)
            assert name != "split"
        if name in ("parse", "rewrite") and answer is not None:
            assert is_asked_for(text), name


def check_place(error: StreamqlError, text: str) -> None:
    """The line and the column are in the text, or just behind it."""
    lines = text.split("\n")
    assert error.line is not None
    assert error.column is not None
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1


# fmt: off
SNIPPETS = st.sampled_from([
    "'", '"', "`", "(", ")", "[", "]", ",", ";", ".", "=>", "=", "/*", "*/", "--", "\n", "$", "$$", "\\", "ON", "AT", "WITH",
    "CONSUME", "STREAM", "TABLE", "FROM", "CHANGES", "(INFORMATION => DEFAULT)", "MERGE", "VALUES", "CASE", "END",
    "BEGIN", "1", "-", "流", "\x00", "STORAGE CONNECTION", "EXTERNAL", "USING KAFKA", "OPTIONS (", "TYPE", "${env:A}", "{", "<",
    "AT (STREAM => 's')", "END (STREAM => s)", "BEFORE (VERSION => 1)",
    "DYNAMIC TABLE", "MATERIALIZED VIEW", "REFRESH", "INTERVAL", "AS", "COMMENT", "START WITH", "TARGET_LAG =", "VERIFY",
])
# fmt: on


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A statement with pieces dropped, doubled, put in, or taken from another."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        other = draw(st.sampled_from(TEXTS))
        cut = draw(st.integers(0, len(other)))
        piece = draw(st.one_of(st.just(""), SNIPPETS, st.just(text[start:end] * 2), st.just(other[cut : cut + 20])))
        text = text[:start] + piece + text[end:]
    return text


@settings(max_examples=1000, deadline=None)
@given(damaged())
def test_damaged_statements_raise_only_our_error(text: str) -> None:
    check_total(text)


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(SNIPPETS, max_size=30).map(" ".join),
        st.lists(SNIPPETS, max_size=30).map("".join),
    )
)
def test_any_text_raises_only_our_error(text: str) -> None:
    check_total(text)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [t for t in TEXTS if split(t + ";") == split(t.rstrip(";") + ";") and len(split(t + ";")) == 1]
        ),
        max_size=6,
    )
)
def test_scripts_fall_apart_where_they_were_joined(texts: list[str]) -> None:
    texts = [text for text in texts if split(text + "\n;")[-1].terminated]
    whole = split("\n;\n".join([*texts, ""]))
    assert [f.text for f in whole] == [split(text + "\n;")[0].text for text in texts]


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_quoted_strings_are_one_token(value: str) -> None:
    statement = parse(f"CREATE STREAM s ON TABLE t COMMENT {quote_string(value)} APPEND_ONLY = TRUE")
    assert isinstance(statement, CreateStream)
    assert (statement.comment, statement.mode) == (value, StreamMode.APPEND_ONLY)


# --- time

LONG = {
    "values": "INSERT INTO t VALUES " + ", ".join(f"({i}, 'abc{i}', {i}.5)" for i in range(8000)),
    "creates": "CREATE " * 30000,
    "streams": "STREAM " * 30000 + "CREATE",
    "table stream": "CREATE TABLE x AS SELECT " + "a, " * 60000 + "stream",
    "merge": "MERGE INTO t USING s ON "
    + "a AND " * 40000
    + "b WHEN NOT MATCHED THEN INSERT VALUES ("
    + "t.a, " * 3000
    + "1)",
    "parentheses": "MERGE INTO t USING s ON x WHEN NOT MATCHED THEN INSERT VALUES " + "(SELECT " * 20000,
    "changes": "SELECT * FROM " + "t CHANGES (INFORMATION => DEFAULT) AT (VERSION => 1), " * 2000 + "x",
    "points": "SELECT * FROM " + "t AT (STREAM => 's') d, " * 3000 + "x",
    "arrows": "SELECT * FROM t AT (VERSION " + " " * 200000 + "STREAM",
    "options": "SELECT * FROM " + "t WITH (CONSUME = " * 10000,
    "quotes": "SELECT " + "''" * 100000 + "' MERGE CONSUME",
    "backslashes": "SELECT '" + "\\'" * 100000 + " CONSUME",
    "comments": "CREATE STREAM " + "/*" * 100000,
    "backquotes": "`" * 200001 + " CONSUME",
    "dollars": "$a$" * 50001 + " CONSUME",
    "begins": "BEGIN " * 40000,
    "cases": "BEGIN SELECT " + "CASE " * 40000,
    "semicolons": "a;" * 60000,
    "numbers": "SELECT " + "1.1e" * 50000 + " CONSUME",
    "types": "CREATE TABLE t (" + "a ARRAY<VARCHAR>, " * 10000 + "b VARCHAR)",
    "angles": "CREATE TABLE t (a " + "ARRAY<" * 30000 + "VARCHAR",
    "connections": "CREATE STORAGE CONNECTION c TYPE KAFKA " + "A = 'b', " * 20000,
    "lists": "CREATE STORAGE CONNECTION c TYPE KAFKA OPTIONS (" + "'a' 'b' " * 20000,
    "servers": "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = [" + "'h:1', " * 20000 + "'h:1']",
    "jaas": "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_JAAS_CONFIG = '" + "a=b " * 50000 + "${env:A}'",
    "jaas entries": "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_JAAS_CONFIG = '" + "a required b=c; " * 12000 + "'",
    "jaas word": "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_JAAS_CONFIG = '" + "a" * 200000 + "'",
    "jaas spaces": "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_JAAS_CONFIG = 'a required" + " " * 200000 + "'",
    "references": "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_JAAS_CONFIG = '" + "${a:" * 50000 + "'",
    "columns": "CREATE EXTERNAL TABLE k (" + "value BINARY, " * 15000 + "key BINARY) USING KAFKA",
    "external": "CREATE EXTERNAL TABLE k " + "USING x " * 25000 + "USING KAFKA",
    "positions": "ALTER STREAM s SET OFFSET '{" + ", ".join(f'"{i}": {i}' for i in range(15000)) + "}'",
    "braces": "ALTER STREAM s SET OFFSET '" + '{"0": ' * 30000 + "'",
    "json": "ALTER STREAM s SET OFFSET '" + "[" * 200000 + "'",
    "schedules": "CREATE DYNAMIC TABLE d REFRESH START WITH a "
    + "+ INTERVAL 1 DAY " * 12000
    + "INTERVAL 1 DAY AS SELECT 1",
    "intervals": "CREATE DYNAMIC TABLE d " + "REFRESH INTERVAL 1 DAY " * 9000,
    "listed columns": "CREATE DYNAMIC TABLE d ("
    + ", ".join(f"c{i} COMMENT 'x'" for i in range(10000))
    + ") AS SELECT 1",
    "listed names": "CREATE DYNAMIC TABLE d CLUSTER BY (" + ", ".join(f"c{i}" for i in range(20000)) + ") AS SELECT 1",
    "table properties": "CREATE DYNAMIC TABLE d PROPERTIES ("
    + ", ".join(f"'{i}' = 'x'" for i in range(14000))
    + ") AS SELECT 1",
    "queries": "CREATE DYNAMIC TABLE d AS " + "(" * 100000 + "SELECT 1" + ")" * 100000,
    "ctes": "CREATE MATERIALIZED VIEW m AS WITH " + "x AS (SELECT 1), " * 12000 + "y AS (SELECT 1) SELECT 1",
    "refreshes": "REFRESH DYNAMIC TABLE " * 9000,
    "durations": "CREATE DYNAMIC TABLE d TARGET_LAG = '" + " " * 100000 + "1" * 100000 + "' AS SELECT 1",
    "casts": "SELECT " + "CAST(" * 20000 + "a " + "AS VARCHAR)" * 20000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_time_grows_with_the_text(text: str) -> None:
    """About 200 kB each; a quadratic step anywhere would take minutes."""
    start = time.process_time()
    check_total(text)
    assert time.process_time() - start < 10


# --- the prefilter


def test_prefilter_is_one_line_for_two_engines() -> None:
    pattern = _pattern().pattern
    assert "\n" not in pattern
    # What java.util.regex and re do not share, or what could take more than linear time.
    assert not re.search(r"\(\?P|\(\?#|\\[dDwWbB]|[*+?][+]|\)[*+]", pattern)


ORDINARY = [
    "SELECT * FROM orders WHERE change_type = 'INSERT' ORDER BY id DESC",
    "SELECT * FROM stream_events JOIN upstream USING (id)",
    "INSERT INTO t SELECT id, name FROM changes",
    "INSERT INTO t VALUES (1, 'create')",
    "INSERT INTO t SELECT /*+ MERGE(a) */ * FROM a JOIN b",
    "CREATE TABLE t (id INT, name STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "CREATE TABLE streams_log AS SELECT 1",
    "CREATE OR REPLACE VIEW v AS SELECT * FROM t",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.logRetentionDuration' = '7 days')",
    "DROP TABLE IF EXISTS t",
    "SHOW TABLES IN db",
    "DESCRIBE EXTENDED t",
    "UPDATE t SET a = 1 WHERE b = 2",
    "DELETE FROM t WHERE information = 'x'",
    "SET spark.sql.shuffle.partitions = 2",
    "-- a comment\nSELECT 1",
    "CREATE TABLE k USING kafka OPTIONS ('subscribe' = 't')",
    "SELECT * FROM connections JOIN external ON true",
    "SELECT dynamic FROM materialized",
    "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "REFRESH TABLE t",
    "REFRESH t",
    "EXPLAIN SELECT * FROM dynamic_tables",
    "EXPLAIN EXTENDED SELECT 1",
    "CREATE TABLE dynamics (materialized_at TIMESTAMP) USING delta",
    "DROP VIEW v_materialized",
    "SELECT CASE WHEN at = 1 THEN f(a => 1) END, version FROM stream before",
    "SELECT timestamp, version FROM t WHERE offset >= 3 AND at < now() GROUP BY CASE WHEN a THEN 1 END",
    "SELECT transform(a, version -> version + 1) FROM t at",
    "INSERT INTO dynamic SELECT * FROM materialized",
    "",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_prefilter_lets_ordinary_statements_pass_by(text: str) -> None:
    assert not might_be_ours(text)
