"""parse(): every spelling of our statements, what stays Spark's, and errors that say where and what to type."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from streamql.dialect import might_be_ours, parse, rewrite
from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.statements import (
    AlterStream,
    BeginTransaction,
    CommitTransaction,
    CreateStream,
    DescribeStream,
    DropStream,
    PointInTime,
    Release,
    RollbackStatement,
    RollbackTransaction,
    SetOffset,
    SetTableProperties,
    ShowCreateStream,
    ShowStreams,
)
from streamql.dialect.text.tokens import Span, TokenType
from streamql.errors import StreamqlError
from streamql.model import StreamMode

from .samples import columns_of, is_asked_for, is_stream

FIXTURES = {"test_carets": "rejected.sql", "test_stays_sparks": "sparks.sql", "test_rejected": "rejected.sql"}


def without_spans(statement: Any) -> Any:
    """The statement with all spans None: spans have their own tests."""
    changes: dict[str, Any] = {}
    for field in fields(statement):
        value = getattr(statement, field.name)
        if isinstance(value, Span):
            changes[field.name] = None
        elif is_dataclass(value):
            changes[field.name] = without_spans(value)
    return replace(statement, **changes)


APPEND, STANDARD = StreamMode.APPEND_ONLY, StreamMode.STANDARD
S = CreateStream(("s",), ("t",))

CREATED: list[tuple[str, object]] = [
    ("CREATE STREAM s ON TABLE t", S),
    ("create table stream s on table t;", S),
    ("CREATE/**/TABLE--x\nSTREAM/* /* y */ */s ON TABLE t ; ; -- end", S),
    ("CREATE OR REPLACE TABLE STREAM s ON TABLE t", replace(S, or_replace=True)),
    ("CREATE STREAM IF NOT EXISTS s ON TABLE t", replace(S, if_not_exists=True)),
    ("CREATE TABLE STREAM IF NOT EXISTS s ON TABLE t", replace(S, if_not_exists=True)),
    ("CREATE TABLE STREAM comment ON TABLE t", replace(S, name=("comment",))),
    ("CREATE TABLE STREAM shallow ON TABLE t", replace(S, name=("shallow",))),
    ("CREATE TABLE STREAM select.s ON TABLE t", replace(S, name=("select", "s"))),
    ("CREATE TABLE STREAM `as` ON TABLE t", replace(S, name=("as",))),
    ("CREATE STREAM stream ON TABLE table", CreateStream(("stream",), ("table",))),
    ("CREATE STREAM c.d.s ON TABLE x.y.t", CreateStream(("c", "d", "s"), ("x", "y", "t"))),
    ('CREATE STREAM `a``b`."c d" ON TABLE `t.u`', CreateStream(("a`b", "c d"), ("t.u",))),
    ("CREATE STREAM 流 ON TABLE 表.t1", CreateStream(("流",), ("表", "t1"))),
    ("CREATE STREAM s ON VIEW v", CreateStream(("s",), ("v",), "VIEW")),
    ("CREATE STREAM s ON DYNAMIC TABLE t", replace(S, source_type="DYNAMIC TABLE")),
    ("CREATE STREAM s ON MATERIALIZED VIEW t", replace(S, source_type="MATERIALIZED VIEW")),
    (
        "CREATE STREAM s ON EXTERNAL TABLE t INSERT_ONLY = TRUE",
        replace(S, source_type="EXTERNAL TABLE", mode=APPEND),
    ),
    ("CREATE STREAM s ON TABLE t WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY')", replace(S, mode=APPEND)),
    ("CREATE STREAM s ON TABLE t WITH (TABLE_STREAM_MODE = STANDARD)", replace(S, mode=STANDARD)),
    ("CREATE STREAM s ON TABLE t PROPERTIES (\"table_stream_mode\" 'standard')", replace(S, mode=STANDARD)),
    ("CREATE STREAM s ON TABLE t WITH (`Table_Stream_Mode` = append_only)", replace(S, mode=APPEND)),
    (
        "CREATE STREAM s ON TABLE t WITH PROPERTIES ('TABLE_STREAM_MODE'='STANDARD','SHOW_INITIAL_ROWS'='TRUE', comment 'a')",
        replace(S, mode=STANDARD, show_initial_rows=True, comment="a"),
    ),
    ("CREATE STREAM s ON TABLE t WITH (COMMENT='a') WITH (SHOW_INITIAL_ROWS=false)", replace(S, comment="a")),
    ("CREATE STREAM s ON TABLE t APPEND_ONLY = true", replace(S, mode=APPEND)),
    ("CREATE STREAM s ON TABLE t APPEND_ONLY = false", replace(S, mode=STANDARD)),
    ("CREATE STREAM s ON TABLE t APPEND_ONLY=TRUE WITH (TABLE_STREAM_MODE=APPEND_ONLY)", replace(S, mode=APPEND)),
    (
        "CREATE STREAM s ON TABLE t COMMENT 'it''s' SHOW_INITIAL_ROWS = TRUE",
        replace(S, comment="it's", show_initial_rows=True),
    ),
    ("CREATE STREAM s ON TABLE t COMMENT = 'a\\'b' ' c' r'\\n'", replace(S, comment="a'b c\\n")),
    ("CREATE STREAM s ON TABLE t COMMENT = '\\uD83D\\uDE00'", replace(S, comment="😀")),
]

POINTS = [
    ("TIMESTAMP AS OF '2024-01-01 00:00:00'", PointInTime("TIMESTAMP", expression="'2024-01-01 00:00:00'")),
    ("TIMESTAMP AS OF TIMESTAMP '2024-01-01'", PointInTime("TIMESTAMP", expression="TIMESTAMP '2024-01-01'")),
    ("TIMESTAMP AS OF now() - INTERVAL 1 DAY", PointInTime("TIMESTAMP", expression="now() - INTERVAL 1 DAY")),
    (
        "TIMESTAMP AS OF (SELECT max(t) FROM x WITH (a = 1))",
        PointInTime("TIMESTAMP", expression="(SELECT max(t) FROM x WITH (a = 1))"),
    ),
    ("VERSION AS OF 7", PointInTime("VERSION", version=7)),
    ("VERSION AS OF '7'", PointInTime("VERSION", version=7)),
    ("AT (VERSION => 0)", PointInTime("VERSION", version=0)),
    ("BEFORE(VERSION=>3)", PointInTime("VERSION", True, version=3)),
    ("AT (OFFSET => -60*5)", PointInTime("OFFSET", expression="-60*5")),
    (
        "at (timestamp => f(1, /* x */ '2')::timestamp)",
        PointInTime("TIMESTAMP", expression="f(1, /* x */ '2')::timestamp"),
    ),
    ("AT (STREAM => s2)", PointInTime("STREAM", stream=("s2",))),
    ("AT (STREAM => 's2')", PointInTime("STREAM", stream=("s2",))),
    ("AT (STREAM => 'db.`s 2`')", PointInTime("STREAM", stream=("db", "s 2"))),
    ('BEFORE (STREAM => "s.2")', PointInTime("STREAM", True, stream=("s.2",))),
]

OTHERS: list[tuple[str, object]] = [
    ("DROP STREAM s", DropStream(("s",))),
    ("DROP TABLE STREAM IF EXISTS a.s;", DropStream(("a", "s"), True)),
    ("DROP TABLE STREAM purge.s", DropStream(("purge", "s"))),
    ("DROP STREAM purge", DropStream(("purge",))),
    ("ALTER STREAM s SET COMMENT = 'x'", AlterStream(("s",), SetComment("x"))),
    ("ALTER TABLE STREAM IF EXISTS s SET COMMENT 'x'", AlterStream(("s",), SetComment("x"), True)),
    ("ALTER STREAM s UNSET COMMENT", AlterStream(("s",), SetComment(None))),
    ("ALTER TABLE STREAM s RENAME TO db.s2", AlterStream(("s",), RenameTo(("db", "s2")))),
    ("ALTER TABLE STREAM `add` RENAME TO s2", AlterStream(("add",), RenameTo(("s2",)))),
    ("ALTER STREAM change SET OFFSET TO LATEST", AlterStream(("change",), SetOffset(None))),
    ("ALTER STREAM s SET OFFSET LATEST", AlterStream(("s",), SetOffset(None))),
    ("ALTER STREAM s SET OFFSET VERSION 3", AlterStream(("s",), SetOffset(PointInTime("VERSION", version=3)))),
    (
        "ALTER STREAM s SET OFFSET TIMESTAMP now() - INTERVAL 1 DAY;",
        AlterStream(("s",), SetOffset(PointInTime("TIMESTAMP", expression="now() - INTERVAL 1 DAY"))),
    ),
    ("ALTER STREAM s RELEASE", AlterStream(("s",), Release())),
    ("BEGIN TRANSACTION", BeginTransaction()),
    ("begin;", BeginTransaction()),
    ("/* x */ START TRANSACTION", BeginTransaction()),
    ("COMMIT WORK", CommitTransaction()),
    ("-- y\nROLLBACK", RollbackTransaction()),
    ("rollback /* x */ statement;", RollbackStatement()),
    ("SHOW STREAMS", ShowStreams()),
    ("SHOW TABLE STREAMS;", ShowStreams()),
    ("SHOW TERSE STREAMS IN db", ShowStreams(("db",), terse=True)),
    ("show full table streams from c.db", ShowStreams(("c", "db"))),
    ("SHOW STREAMS IN SCHEMA db", ShowStreams(("db",))),
    ("SHOW STREAMS IN DATABASE `my db`", ShowStreams(("my db",))),
    ("SHOW STREAMS IN schema", ShowStreams(("schema",))),
    ("SHOW STREAMS IN schema LIKE 'a%'", ShowStreams(("schema",), "a%")),
    ("SHOW STREAMS IN schema.x", ShowStreams(("schema", "x"))),
    ("SHOW STREAMS LIKE 'a%' IN db LIMIT 5", ShowStreams(("db",), "a%", None, 5)),
    (
        "SHOW STREAMS IN db WHERE has_data AND name LIKE 'LIMIT' LIMIT 5",
        ShowStreams(("db",), None, "has_data AND name LIKE 'LIMIT'", 5),
    ),
    ("SHOW STREAMS WHERE name IN ('a', 'b')", ShowStreams(where="name IN ('a', 'b')")),
    ("DESC STREAM s", DescribeStream(("s",))),
    ("DESCRIBE TABLE STREAM db.s", DescribeStream(("db", "s"))),
    ('DESC TABLE STREAM "s"', DescribeStream(("s",))),
    ("SHOW CREATE STREAM s", ShowCreateStream(("s",))),
    ("SHOW CREATE TABLE STREAM a.s", ShowCreateStream(("a", "s"))),
    ("ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')", SetTableProperties(("t",), True)),
    ("ALTER TABLE stream SET TBLPROPERTIES (CHANGE_TRACKING = FALSE)", SetTableProperties(("stream",), False)),
    ("alter table a.b.t set properties (`Change_Tracking` 'TRUE');", SetTableProperties(("a", "b", "t"), True)),
    ("ALTER TABLE t SET CHANGE_TRACKING = TRUE", SetTableProperties(("t",), True)),
    ("ALTER TABLE t SET CHANGE_TRACKING = 'false'", SetTableProperties(("t",), False)),
    ("ALTER TABLE t SET PROPERTIES ('data_retention_days' = '7')", SetTableProperties(("t",), None, 7)),
    (
        "ALTER TABLE t SET TBLPROPERTIES (delta.appendOnly = TRUE, data_retention_days = 30, 'a' = 'b,c', n = 1.50)",
        SetTableProperties(("t",), None, 30, {"delta.appendOnly": "true", "a": "b,c", "n": "1.50"}),
    ),
]


@pytest.mark.parametrize(("text", "expected"), CREATED + OTHERS)
def test_parses(text: str, expected: object) -> None:
    assert without_spans(parse(text)) == expected
    assert might_be_ours(text)


@pytest.mark.parametrize("after", ["", " COMMENT 'x'", " APPEND_ONLY = FALSE COMMENT 'x'", " WITH (COMMENT = 'x')"])
@pytest.mark.parametrize("before", ["", " COMMENT 'y'", " PROPERTIES ('COMMENT' = 'y')"])
@pytest.mark.parametrize(("text", "point"), POINTS)
def test_points_stand_anywhere(before: str, text: str, point: PointInTime, after: str) -> None:
    if before and after:
        after = " SHOW_INITIAL_ROWS = TRUE"
    statement = parse(f"CREATE STREAM s ON TABLE t{before} {text}{after}")
    assert isinstance(statement, CreateStream)
    assert statement.point is not None
    assert replace(statement.point, span=None) == point


def test_spans_say_where() -> None:
    text = "CREATE STREAM\n  db.s -- x\n ON TABLE `t`\n AT (VERSION => 3)"
    statement = parse(text)
    assert isinstance(statement, CreateStream)
    spans = [statement.name_span, statement.source_span, statement.point and statement.point.span]
    assert [text[s.start : s.end] for s in spans if s] == ["db.s", "`t`", "AT (VERSION => 3)"]
    assert [(s.line, s.column) for s in spans if s] == [(2, 3), (3, 11), (4, 2)]


def test_stays_sparks(before: str) -> None:
    """Statements that Spark has a meaning for, or that are nobody's: neither parsed nor rewritten."""
    assert parse(before) is None
    assert rewrite(before, is_stream, columns_of) is None


def test_carets(before: str) -> None:
    """The place of an error is where the word stands that the message says was found, or refused."""
    with pytest.raises(StreamqlError) as caught:
        parse(before) or rewrite(before, is_stream, columns_of)
    error = caught.value
    assert error.line is not None
    assert error.column is not None
    there = before.split("\n")[error.line - 1][error.column - 1 :]
    found = re.search(r"found (.+)\Z", error.message)
    if (
        found is not None
        and found.group(1) not in (TokenType.END.value, "nothing")
        and "not hold a name" not in error.message
    ):
        assert there.startswith(found.group(1).removesuffix("..."))
    given_twice = re.match(r"(\S+) is given twice", error.message)
    if given_twice is not None:
        assert there.upper().lstrip("'`\"").startswith(given_twice.group(1).upper())


def test_rejected(before: str, after: str) -> None:
    """The expectation: code, line:column, and words of the message or the hint."""
    with pytest.raises(StreamqlError) as caught:
        parse(before) or rewrite(before, is_stream, columns_of)
    code, where, words = after.split(" ", 2)
    error = caught.value
    assert (error.code, f"{error.line}:{error.column}") == (code, where), str(error)
    assert words in str(error)
    assert error.hint
    assert is_asked_for(before)
