"""Dynamic tables and materialized views: spellings, places, errors, and what stays Spark's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamql.dialect import might_be_ours, parse, split
from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.statements import CreateStream
from streamql.features.dynamic.language.statements import (
    AlterDynamicTable,
    CreateDynamicTable,
    DescribeDynamicTable,
    DropDynamicTable,
    ExplainRefresh,
    RefreshDynamicTable,
    Resume,
    Schedule,
    SetRefreshMode,
    SetSchedule,
    ShowCreateDynamicTable,
    ShowDynamicTables,
    ShowRefreshHistory,
    Suspend,
    VerifyDynamicTable,
)

from .test_parse import test_carets, test_rejected, without_spans  # noqa: F401 - the tests run here over another file

FIXTURES = {"test_carets": "rejected_dynamic.sql", "test_rejected": "rejected_dynamic.sql"}

D = CreateDynamicTable(("d",), "SELECT 1")
M = replace(D, name=("m",), is_materialized_view=True)
HOURLY = Schedule(interval_s=3600)

CREATED: list[tuple[str, object]] = [
    ("CREATE DYNAMIC TABLE d AS SELECT 1", D),
    ("create /* x */ dynamic -- y\n table d as SELECT 1 ;;", D),
    ("CREATE OR REPLACE DYNAMIC TABLE d AS SELECT 1", replace(D, or_replace=True)),
    ("CREATE DYNAMIC TABLE IF NOT EXISTS a.b.d AS SELECT 1", replace(D, name=("a", "b", "d"), if_not_exists=True)),
    ("CREATE DYNAMIC TABLE `x y`.\"z\" AS SELECT 1", replace(D, name=("x y", "z"))),
    ("CREATE DYNAMIC TABLE dynamic AS SELECT 1", replace(D, name=("dynamic",))),
    ("CREATE MATERIALIZED VIEW m AS SELECT 1", M),
    ("CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT 1", replace(M, or_replace=True)),
    ("CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT 1", replace(M, if_not_exists=True)),
    ("CREATE MATERIALIZED VIEW view AS SELECT 1", replace(M, name=("view",))),
    (
        "CREATE DYNAMIC TABLE d (a, `b c` COMMENT 'x, )', \"e\") AS SELECT 1",
        replace(D, columns=(("a", None), ("b c", "x, )"), ("e", None))),
    ),
    ("CREATE DYNAMIC TABLE d(comment COMMENT 'x', date)AS SELECT 1", replace(D, columns=(("comment", "x"), ("date", None)))),
    ("CREATE DYNAMIC TABLE d PARTITIONED BY (a, `b c`) AS SELECT 1", replace(D, partitioned_by=("a", "b c"))),
    ("CREATE DYNAMIC TABLE d CLUSTER BY (a) AS SELECT 1", replace(D, cluster_by=("a",))),
    ("CREATE DYNAMIC TABLE d CLUSTERED BY(a,b) AS SELECT 1", replace(D, cluster_by=("a", "b"))),
    ("CREATE DYNAMIC TABLE d COMMENT 'it''s' AS SELECT 1", replace(D, comment="it's")),
    ("CREATE DYNAMIC TABLE d COMMENT = 'x' 'y' AS SELECT 1", replace(D, comment="xy")),
    (
        "CREATE DYNAMIC TABLE d PROPERTIES ('a b' = 'c', delta.appendOnly = TRUE, \"n\" 1.50, data_lifecycle='7') AS SELECT 1",
        replace(D, properties=(("a b", "c"), ("delta.appendOnly", "true"), ("n", "1.50"), ("data_lifecycle", "7"))),
    ),
    ("CREATE DYNAMIC TABLE d TBLPROPERTIES ('a' = 'true') AS SELECT 1", replace(D, properties=(("a", "true"),))),
    ("CREATE DYNAMIC TABLE d REFRESH_MODE = FULL AS SELECT 1", replace(D, refresh_mode="FULL")),
    ("CREATE DYNAMIC TABLE d refresh_mode 'incremental' AS SELECT 1", replace(D, refresh_mode="INCREMENTAL")),
    ("CREATE DYNAMIC TABLE d INITIALIZE = ON_CREATE AS SELECT 1", D),
    ("CREATE DYNAMIC TABLE d INITIALIZE = on_schedule AS SELECT 1", replace(D, is_initialized=False)),
    ("CREATE MATERIALIZED VIEW m BUILD IMMEDIATE AS SELECT 1", M),
    ("CREATE MATERIALIZED VIEW m BUILD DEFERRED AS SELECT 1", replace(M, is_initialized=False)),
    ("CREATE MATERIALIZED VIEW m DISABLE QUERY REWRITE AS SELECT 1", replace(M, unused=("DISABLE QUERY REWRITE",))),
    (
        "CREATE DYNAMIC TABLE d WAREHOUSE = 'w' REFRESH INTERVAL 1 HOUR VCLUSTER = `v 1` AS SELECT 1",
        replace(D, schedule=HOURLY, unused=("WAREHOUSE", "VCLUSTER")),
    ),
    (
        (
            "CREATE OR REPLACE DYNAMIC TABLE a.d (x COMMENT 'y') PARTITIONED BY (x) COMMENT 'c' PROPERTIES ('k'='v') "
            "refresh interval 10 minute vcluster default AS SELECT 1"
        ),
        CreateDynamicTable(
            ("a", "d"), "SELECT 1", False, True, False, (("x", "y"),), ("x",), (), "c", (("k", "v"),), Schedule(interval_s=600),
            unused=("VCLUSTER",),
        ),
    ),
    (
        "CREATE DYNAMIC TABLE d TARGET_LAG = '20 minutes' WAREHOUSE = mywh REFRESH_MODE = AUTO INITIALIZE = ON_CREATE AS SELECT 1",
        replace(D, schedule=Schedule(lag_s=1200), refresh_mode="AUTO", unused=("WAREHOUSE",)),
    ),
]  # fmt: skip

SCHEDULES: list[tuple[str, object]] = [
    ("TARGET_LAG = '1 minute'", Schedule(lag_s=60)),
    ("target_lag ' 2  DAYS '", Schedule(lag_s=172800)),
    ("TARGET_LAG = '1second'", Schedule(lag_s=1)),
    ("TARGET_LAG = \"3 hours\"", Schedule(lag_s=10800)),
    ("TARGET_LAG = '5m'", Schedule(lag_s=300)),
    ("TARGET_LAG = '300s'", Schedule(lag_s=300)),
    ("TARGET_LAG = '2 weeks'", Schedule(lag_s=1209600)),
    ("TARGET_LAG = '1 hour 30 minutes'", Schedule(lag_s=5400)),
    ("REFRESH INTERVAL 1 HOUR 30 MINUTES", Schedule(interval_s=5400)),
    ("REFRESH INTERVAL '1h 30min'", Schedule(interval_s=5400)),
    ("TARGET_LAG = DOWNSTREAM", Schedule(is_downstream=True)),
    ("TARGET_LAG 'downstream'", Schedule(is_downstream=True)),
    ("REFRESH INTERVAL 1 SECOND", Schedule(interval_s=1)),
    ("REFRESH INTERVAL 30 SECONDS", Schedule(interval_s=30)),
    ("refresh interval 10 minutes", Schedule(interval_s=600)),
    ("REFRESH INTERVAL '1' HOUR", HOURLY),
    ("REFRESH INTERVAL 2 DAYS", Schedule(interval_s=172800)),
    ("REFRESH INTERVAL '10 minutes'", Schedule(interval_s=600)),
    ("REFRESH START WITH now() INTERVAL 1 HOUR", replace(HOURLY, start="now()")),
    ("REFRESH START WITH TIMESTAMP '2026-01-01' INTERVAL 1 HOUR", replace(HOURLY, start="TIMESTAMP '2026-01-01'")),
    (
        "REFRESH START WITH now() + INTERVAL 1 DAY - INTERVAL '1' HOUR INTERVAL 1 HOUR",
        replace(HOURLY, start="now() + INTERVAL 1 DAY - INTERVAL '1' HOUR"),
    ),
    ("REFRESH START WITH f(INTERVAL 1 DAY, CAST(x AS DATE)) INTERVAL 1 HOUR", replace(HOURLY, start="f(INTERVAL 1 DAY, CAST(x AS DATE))")),
    ("REFRESH INTERVAL 1 HOUR START WITH '2026-01-01'", replace(HOURLY, start="'2026-01-01'")),
]  # fmt: skip

QUERIES = [
    "SELECT a AS b, 'AS' FROM t COMMENT",
    "WITH x AS (SELECT 1), y AS (SELECT 2) SELECT * FROM x, y",
    "(SELECT 1) UNION ALL (SELECT 2)",
    "((WITH x AS (VALUES (1)) SELECT * FROM x))",
    "VALUES (1, 'a'), (2, 'b;')",
    "FROM t SELECT *",
    "FROM t |> WHERE a > 1",
    "TABLE t",
    "select /*+ BROADCAST(t) */ CASE WHEN a THEN 1 END -- x\n  FROM t\n",
    "SELECT * FROM t REFRESH WHERE x['AS'] = {1: 2} AND y LIKE 'a'",
]

ALTERED: list[tuple[str, object]] = [
    ("SUSPEND", Suspend()),
    ("resume", Resume()),
    ("SET TARGET_LAG = '1 hour'", SetSchedule(Schedule(lag_s=3600))),
    ("SET TARGET_LAG = DOWNSTREAM", SetSchedule(Schedule(is_downstream=True))),
    ("SET REFRESH INTERVAL 1 HOUR", SetSchedule(HOURLY)),
    ("SET REFRESH START WITH now() INTERVAL 1 HOUR", SetSchedule(replace(HOURLY, start="now()"))),
    ("SET REFRESH_MODE = full", SetRefreshMode("FULL")),
    ("SET COMMENT = 'x'", SetComment("x")),
    ("SET COMMENT 'x'", SetComment("x")),
    ("UNSET COMMENT", SetComment(None)),
    ("UNSET TARGET_LAG", SetSchedule(None)),
    ("UNSET SCHEDULE", SetSchedule(None)),
    ("RENAME TO a.e", RenameTo(("a", "e"))),
]

OTHERS: list[tuple[str, object]] = [
    ("DROP DYNAMIC TABLE d", DropDynamicTable(("d",))),
    ("drop dynamic table if exists a.d;", DropDynamicTable(("a", "d"), False, True)),
    ("DROP MATERIALIZED VIEW m", DropDynamicTable(("m",), True)),
    ("ALTER DYNAMIC TABLE d REFRESH", RefreshDynamicTable(("d",))),
    ("ALTER MATERIALIZED VIEW m REFRESH;", RefreshDynamicTable(("m",), True)),
    ("REFRESH DYNAMIC TABLE d", RefreshDynamicTable(("d",))),
    ("-- x\nrefresh/* y */materialized view `m`", RefreshDynamicTable(("m",), True)),
    ("REFRESH DYNAMIC/**/TABLE/**/d", RefreshDynamicTable(("d",))),
    ("VERIFY DYNAMIC TABLE a.d", VerifyDynamicTable(("a", "d"))),
    ("VERIFY MATERIALIZED VIEW m", VerifyDynamicTable(("m",), True)),
    ("EXPLAIN REFRESH DYNAMIC TABLE d", ExplainRefresh(("d",))),
    ("explain refresh materialized view m", ExplainRefresh(("m",), True)),
    ("SHOW DYNAMIC TABLES", ShowDynamicTables()),
    ("SHOW MATERIALIZED VIEWS FROM a.b LIKE 'x%' LIMIT 3", ShowDynamicTables(True, ("a", "b"), "x%", None, 3)),
    ("SHOW DYNAMIC TABLES LIKE 'x' IN SCHEMA schema", ShowDynamicTables(False, ("schema",), "x")),
    ("SHOW DYNAMIC TABLES WHERE name LIKE 'LIMIT' LIMIT 5", ShowDynamicTables(where="name LIKE 'LIMIT'", limit=5)),
    ("SHOW DYNAMIC TABLE REFRESH HISTORY", ShowRefreshHistory()),
    ("SHOW MATERIALIZED VIEW REFRESH HISTORY FOR a.m", ShowRefreshHistory(True, ("a", "m"))),
    ("SHOW DYNAMIC TABLE REFRESH HISTORY OF d LIMIT 1", ShowRefreshHistory(False, ("d",), None, 1)),
    ("SHOW DYNAMIC TABLE REFRESH HISTORY WHERE a = 'x' LIMIT 2", ShowRefreshHistory(where="a = 'x'", limit=2)),
    ("SHOW DYNAMIC TABLE REFRESH HISTORY LIMIT 2 FOR `for`", ShowRefreshHistory(name=("for",), limit=2)),
    ("DESC DYNAMIC TABLE d", DescribeDynamicTable(("d",))),
    ("DESCRIBE MATERIALIZED VIEW \"m\";", DescribeDynamicTable(("m",), True)),
    ("DESC dynamic table table", DescribeDynamicTable(("table",))),
    ("SHOW CREATE DYNAMIC TABLE a.d", ShowCreateDynamicTable(("a", "d"))),
    ("SHOW CREATE MATERIALIZED VIEW m", ShowCreateDynamicTable(("m",), True)),
]  # fmt: skip
PARSED = (
    CREATED
    + [(f"CREATE DYNAMIC TABLE d {text} AS SELECT 1", replace(D, schedule=schedule)) for text, schedule in SCHEDULES]
    + [(f"CREATE MATERIALIZED VIEW m AS {query}", replace(M, query=query.rstrip())) for query in QUERIES]
    + [(f"ALTER DYNAMIC TABLE d {text}", AlterDynamicTable(("d",), False, action)) for text, action in ALTERED]
    + [(f"ALTER MATERIALIZED VIEW IF EXISTS a.m {text}", AlterDynamicTable(("a", "m"), True, action, True)) for text, action in ALTERED]
    + OTHERS
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PARSED)
def test_parses(text: str, expected: object) -> None:
    assert without_spans(parse(text)) == expected
    assert might_be_ours(text)
    assert len(split(f"SELECT 1; {text.rstrip(';')}\n; SELECT 2")) == 3


def test_only_a_clusters_name_is_not_a_schedule() -> None:
    statement = parse("CREATE DYNAMIC TABLE d REFRESH VCLUSTER v AS SELECT 1")
    assert without_spans(statement) == replace(D, unused=("VCLUSTER",))


def test_spans_say_where() -> None:
    text = "CREATE DYNAMIC TABLE\n  a.`d` -- x\nCOMMENT 'AS' AS\n /* y */ SELECT 1 -- z\n FROM `t` -- end\n;"
    statement = parse(text)
    assert isinstance(statement, CreateDynamicTable)
    assert statement.query == "SELECT 1 -- z\n FROM `t`"
    spans = [statement.name_span, statement.query_span]
    assert [text[s.start : s.end] for s in spans if s] == ["a.`d`", statement.query]
    assert [(s.line, s.column) for s in spans if s] == [(2, 3), (4, 10)]


@pytest.mark.parametrize(("text", "_"), OTHERS)
def test_names_have_their_places(text: str, _: object) -> None:
    statement: Any = parse(text)
    if getattr(statement, "name", None) is not None:
        where = statement.name_span
        assert text[where.start : where.end].replace("`", "").strip('"') == ".".join(statement.name)


@pytest.mark.parametrize("words", ["VIEW", "DYNAMIC TABLE", "MATERIALIZED VIEW"])
def test_streams_take_them(words: str) -> None:
    statement = parse(f"CREATE STREAM s ON {words} a.t AT (OFFSET => '{{\"default.orders\": 17}}')")
    assert isinstance(statement, CreateStream)
    assert (statement.source_type, statement.source) == (words, ("a", "t"))
    assert statement.point is not None
    assert statement.point.positions == (("default.orders", 17),)


@pytest.mark.parametrize(
    ("text", "is_noted"),
    [
        ("CREATE DYNAMIC TABLE `a b`.d TARGET_LAG = '1 hour' AS SELECT 1", True),
        ("ALTER MATERIALIZED VIEW `a b`.d SET REFRESH INTERVAL 1 HOUR", True),
        ("CREATE DYNAMIC TABLE d TARGET_LAG = DOWNSTREAM AS SELECT 1", False),
        ("CREATE DYNAMIC TABLE d AS SELECT 1", False),
        ("ALTER DYNAMIC TABLE d UNSET SCHEDULE", False),
        ("ALTER DYNAMIC TABLE d SUSPEND", False),
        ("DROP DYNAMIC TABLE d", False),
    ],
)
def test_what_refreshes_a_table_is_noted(text: str, is_noted: bool) -> None:
    statement = parse(text)
    assert statement is not None
    assert statement.note.startswith("`a b`.d is refreshed by a process that runs") == is_noted
    assert bool(statement.note) == is_noted
