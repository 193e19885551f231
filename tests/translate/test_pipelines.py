"""Streams on views, dynamic tables over what the script does not create, and transactions."""

from __future__ import annotations

import pytest

from streamql.dialect import split
from streamql.features.translate.model import System
from streamql.features.translate.script import translate
from tests.translate.support import becomes, refusal

SNOWFLAKE, DATABEND, CLICKZETTA = System
TABLES = "CREATE TABLE t (a INT); CREATE TABLE u (a INT);\n"
STREAM = "CREATE STREAM s ON TABLE t APPEND_ONLY = FALSE;\n"


def test_a_view_that_the_script_does_not_create_is_not_altered() -> None:
    note, *statements = becomes(SNOWFLAKE, "CREATE STREAM s ON VIEW v;")
    assert note.startswith("-- note: the script does not say which tables the view v reads")
    assert statements == ["CREATE STREAM s ON VIEW v;"]


def test_a_view_is_found_with_and_without_its_schema() -> None:
    script = "CREATE TABLE t (a INT);\nCREATE VIEW v AS SELECT a FROM t;\nCREATE STREAM s ON VIEW public.v;"
    found = becomes(SNOWFLAKE, script)
    assert "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true');" in found
    assert not any("public.v SET" in line for line in found)


def test_a_view_may_have_the_name_of_its_table() -> None:
    script = "CREATE VIEW orders AS SELECT a FROM raw.orders;\nCREATE STREAM s ON TABLE raw.orders;"
    assert "ALTER TABLE raw.orders SET PROPERTIES ('change_tracking' = 'true');" in becomes(SNOWFLAKE, script)


def test_a_note_says_that_a_relation_of_another_script_may_be_no_table() -> None:
    create = "CREATE DYNAMIC TABLE silver REFRESH_MODE = AUTO AS SELECT a FROM {};"
    assert becomes(SNOWFLAKE, create.format("bronze")) == [
        "-- note: the script does not create bronze: leave ALTER TABLE bronze out if bronze is a dynamic table or a view",
        "ALTER TABLE bronze SET PROPERTIES ('change_tracking' = 'true');",
        create.format("bronze"),
    ]
    assert not any("note" in line for line in becomes(SNOWFLAKE, TABLES + create.format("public.t")))


@pytest.mark.parametrize("system", [SNOWFLAKE, CLICKZETTA])
@pytest.mark.parametrize("source", ["s", "v"])
def test_a_dynamic_table_that_reads_a_stream_is_refused(system: System, source: str) -> None:
    script = f"{TABLES}{STREAM}CREATE VIEW v AS SELECT a FROM s;\nCREATE DYNAMIC TABLE d AS SELECT a FROM {source};"
    assert "reads the stream s" in refusal(system, script)
    assert "streamql run FILE.sql --every 5min --when-has-data s" in translate(script, system).text


def test_a_transaction_without_streams_is_left_out() -> None:
    script = f"{TABLES}BEGIN; DELETE FROM u WHERE a = 1; INSERT INTO u SELECT a FROM t; COMMIT; SELECT 1;"
    text = translate(script, DATABEND).text
    assert "-- note: BEGIN was left out: " in text
    assert "-- note: COMMIT was left out: " in text
    assert [fragment.text for fragment in split(text)][2:] == [
        "DELETE FROM u WHERE a = 1",
        "INSERT INTO u SELECT a FROM t",
        "SELECT 1",
    ]


@pytest.mark.parametrize(
    "body", ["INSERT INTO u SELECT a FROM s; COMMIT;", "INSERT INTO u SELECT a FROM elsewhere; COMMIT;", "DELETE FROM u; ROLLBACK;"]
)  # fmt: skip
def test_other_transactions_stay(body: str) -> None:
    text = translate(f"{TABLES}{STREAM}BEGIN; {body}", SNOWFLAKE).text
    assert "left out" not in text
    assert "BEGIN" in [fragment.text for fragment in split(text)]


def test_statements_that_a_transaction_refuses_have_notes() -> None:
    script = f"{TABLES}{STREAM}BEGIN;\nDELETE FROM u WHERE a = 1;\nSELECT a FROM s WITH CONSUME;\nCOMMIT;"
    found = becomes(DATABEND, script)
    assert "must read a stream here" in found[found.index("DELETE FROM u WHERE a = 1;") - 1]
    assert "WITH CONSUME is refused" in found[found.index("SELECT a FROM s WITH CONSUME;") - 1]


def test_delete_using_a_stream_reads_it() -> None:
    found = becomes(SNOWFLAKE, f"{TABLES}{STREAM}BEGIN;\nDELETE FROM u USING s WHERE u.a = s.a;\nCOMMIT;")
    assert found[-2] == "MERGE INTO u USING s ON u.a = s.a WHEN MATCHED THEN DELETE;"
    assert not any("must read a stream here" in line for line in found)


TRACK = "ALTER TABLE {} SET PROPERTIES ('change_tracking' = 'true');"


@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("SELECT id, total AS x FROM total", "total"),
        ("SELECT id, total(id) AS x FROM total", "total"),
        ("WITH c AS (SELECT 1), d (a) AS (SELECT id FROM total) SELECT * FROM c, d", "total"),
        ("SELECT EXTRACT(YEAR FROM day) AS y FROM total", "total"),
    ],
)
def test_the_tables_of_a_query_are_tracked(query: str, table: str) -> None:
    found = becomes(SNOWFLAKE, f"CREATE DYNAMIC TABLE d TARGET_LAG = '1 minute' WAREHOUSE = w AS {query};")
    assert [line for line in found if line.startswith("ALTER TABLE")] == [TRACK.format(table)]


def test_tracking_that_the_script_switches_on_later_comes_before_the_stream() -> None:
    script = "CREATE STREAM s ON TABLE t;\nALTER TABLE t SET CHANGE_TRACKING = TRUE;"
    assert becomes(SNOWFLAKE, script) == [TRACK.format("t"), *script.splitlines()]


def test_tracking_that_the_script_switches_off_is_switched_on_again() -> None:
    script = "CREATE STREAM s ON TABLE t;\nALTER TABLE t SET CHANGE_TRACKING = FALSE;\nCREATE STREAM r ON TABLE t;"
    assert becomes(SNOWFLAKE, script).count(TRACK.format("t")) == 2


def test_the_statements_of_a_task_change_nothing_behind_it() -> None:
    """They are comments: what they switch on is off in the script."""
    stream = becomes(SNOWFLAKE, "CREATE TASK k AS CREATE STREAM s ON TABLE t;\nCREATE STREAM r ON TABLE t;")
    assert stream[-2:] == [TRACK.format("t"), "CREATE STREAM r ON TABLE t;"]
    block = becomes(SNOWFLAKE, "CREATE TASK k AS BEGIN BEGIN TRANSACTION; END;\nINSERT INTO a SELECT 2;")
    assert block[-1] == "INSERT INTO a SELECT 2;"
    assert "note" not in block[-2]


def test_views_that_read_each_other_stand_for_no_table() -> None:
    script = "CREATE VIEW a AS SELECT * FROM b;\nCREATE VIEW b AS SELECT * FROM a;\nCREATE STREAM s ON VIEW a;"
    assert becomes(SNOWFLAKE, script) == script.splitlines()


def test_a_clone_of_a_stream_switches_tracking_on_once() -> None:
    script = "ALTER TABLE t SET CHANGE_TRACKING = FALSE; CREATE STREAM r CLONE s; CREATE STREAM q CLONE s;"
    found = becomes(SNOWFLAKE, f"{script} CREATE STREAM s ON TABLE t;")
    assert sum(TRACK.format("t") in line for line in found) == 1
