"""Completion: text with the cursor at `|`, and what is offered there. No Spark."""

from __future__ import annotations

import pytest

from streamql.cli.shell.completion.statements import CANDIDATES_MAX, complete
from streamql.cli.shell.snapshot import Relation, Snapshot, Want

SNAPSHOT = Snapshot(
    database="sales",
    databases=("default", "sales", "audit log"),
    relations={
        "sales": (
            Relation("orders", "table"),
            Relation("orders_st", "stream"),
            Relation("Clients", "table"),
            Relation("open orders", "view"),
        ),
        "audit log": (Relation("seen", "table"), Relation("seen_st", "stream")),
    },
    columns={
        ("sales", "orders"): ("id", "amount", "order by"),
        ("sales", "orders_st"): ("__change_type", "__commit_version", "__commit_timestamp", "id", "amount"),
        ("sales", "clients"): ("client_id", "name"),
    },
)
EVERY_RELATION = {"orders", "orders_st", "Clients", "`open orders`"}


DYNAMIC = SNAPSHOT.with_relations(
    "sales", (*SNAPSHOT.relations["sales"], Relation("daily", "dynamic table"), Relation("weekly", "materialized view"))
)


@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        ("CREATE D|", ["DATABASE", "DYNAMIC TABLE"]),
        ("create or replace mat|", ["materialized view"]),
        ("CREATE DYNAMIC |", ["TABLE"]),
        ("CREATE DYNAMIC TABLE |", ["IF NOT EXISTS"]),
        ("CREATE OR REPLACE DYNAMIC TABLE |", []),
        ("CREATE DYNAMIC TABLE d TAR|", ["TARGET_LAG = '10 minutes'", "TARGET_LAG = DOWNSTREAM"]),
        ("CREATE DYNAMIC TABLE d TARGET_LAG = |", ["'1 minute'", "'10 minutes'", "'1 hour'", "DOWNSTREAM"]),
        ("CREATE DYNAMIC TABLE d IN|", ["INITIALIZE = ON_SCHEDULE", "INITIALIZE = ON_CREATE"]),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS m BUI|", ["BUILD DEFERRED", "BUILD IMMEDIATE"]),
        ("CREATE MATERIALIZED VIEW m BUILD |", ["DEFERRED", "IMMEDIATE"]),
        ("CREATE DYNAMIC TABLE d AS SELECT * FROM o|", ["`open orders`", "orders", "orders_st"]),
        ("DROP DYNAMIC TABLE |", ["daily", "default", "sales", "`audit log`", "IF EXISTS"]),
        ("DROP DYNAMIC TABLE IF EXISTS d|", ["daily", "default"]),
        ("REFRESH |", ["TABLE", "DYNAMIC TABLE", "MATERIALIZED VIEW", "FUNCTION"]),
        ("REFRESH MATERIALIZED VIEW sales.|", ["weekly"]),
        ("EXPLAIN REFRESH DYNAMIC TABLE da|", ["daily"]),
        ("VERIFY |", ["DYNAMIC TABLE", "MATERIALIZED VIEW"]),
        ("DESC DYNAMIC TABLE da|", ["daily"]),
        ("SHOW CREATE MATERIALIZED VIEW w|", ["weekly"]),
        ("SHOW DYNAMIC |", ["TABLES", "TABLE REFRESH HISTORY"]),
        ("SHOW DYNAMIC TABLES IN |", ["default", "sales", "`audit log`"]),
        ("SHOW DYNAMIC TABLE |", ["REFRESH HISTORY"]),
        ("SHOW DYNAMIC TABLE REFRESH HISTORY |", ["FOR", "WHERE", "LIMIT"]),
        ("SHOW DYNAMIC TABLE REFRESH HISTORY FOR da|", ["daily"]),
        ("ALTER DYNAMIC TABLE daily S|", ["SUSPEND"]),
        ("ALTER DYNAMIC TABLE daily SET REFRESH_|", ["REFRESH_MODE = AUTO", "REFRESH_MODE = FULL"]),
    ],
)
def test_dynamic_tables(marked: str, wanted: list[str]) -> None:
    found = offered(marked, DYNAMIC)
    assert found[: len(wanted)] == wanted
    assert bool(found) == bool(wanted)


def offered(marked: str, snapshot: Snapshot = SNAPSHOT) -> list[str]:
    before, after = marked.split("|")
    return [c.text for c in complete(before, after, snapshot).candidates]


@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        ("cre|", ["create table", "create table stream", "create stream"]),
        ("CREATE |", ["TABLE", "TABLE STREAM", "STREAM", "OR REPLACE"]),
        ("CREATE TABLE S|", ["STREAM"]),
        ("create or replace t|", ["table", "table stream", "temporary view"]),
        ("DROP |", ["TABLE", "STREAM", "VIEW"]),
        ("SHOW |", ["STREAMS", "TABLES"]),
        ("BEGIN |", ["TRANSACTION"]),
        ("CREATE STREAM s ON TABLE orders W|", ["WITH (TABLE_STREAM_MODE = STANDARD)"]),
        (
            "CREATE STREAM s ON TABLE orders WITH (TA|",
            ["TABLE_STREAM_MODE = STANDARD", "TABLE_STREAM_MODE = APPEND_ONLY"],
        ),
        ("CREATE STREAM s ON TABLE orders WITH (TABLE_STREAM_MODE = |", ["STANDARD", "APPEND_ONLY"]),
        ("CREATE STREAM s ON TABLE orders AT (|", ["VERSION => ", "TIMESTAMP => ", "OFFSET => ", "STREAM => "]),
        ("ALTER TABLE orders SET P|", ["PROPERTIES ('change_tracking' = 'true')"]),
        ("ALTER TABLE orders S|", ["SET PROPERTIES ('change_tracking' = 'true')"]),
        ("ALTER STREAM orders_st SET OFFSET |", ["TO LATEST", "VERSION", "TIMESTAMP"]),
        ("SELECT * FROM orders CHANGES (|", ["INFORMATION => DEFAULT", "INFORMATION => APPEND_ONLY"]),
        ("SELECT * FROM orders wh|", ["where", "when matched then"]),
        ("SELECT id FROM orders GROUP |", ["BY"]),
        ("SELECT 1; SELECT 2; SHO|", ["SHOW STREAMS", "SHOW TABLES"]),
        ("SELECT * FR|", ["FROM"]),
        ("CREATE |", ["EXTERNAL TABLE", "STORAGE CONNECTION"]),
        ("CREATE OR REPLACE EXTERNAL |", ["TABLE"]),
        ("create storage |", ["CONNECTION"]),
        ("CREATE STORAGE CONNECTION |", ["IF NOT EXISTS"]),
        ("CREATE STORAGE CONNECTION c |", ["TYPE KAFKA"]),
        ("CREATE STORAGE CONNECTION c TYPE |", ["KAFKA"]),
        ("CREATE STORAGE CONNECTION c TYPE KAFKA BOO|", ["BOOTSTRAP_SERVERS = ['host:9092']"]),
        ("CREATE STORAGE CONNECTION c TYPE KAFKA SECURITY_PROTOCOL = |", ["'SASL_SSL'"]),
        ("CREATE EXTERNAL TABLE k |", ["USING KAFKA", "CONNECTION"]),
        ("CREATE EXTERNAL TABLE k USING |", ["KAFKA", "parquet"]),
        ("CREATE EXTERNAL TABLE k USING KAFKA OPT|", ["OPTIONS ('topics' = ''"]),
        ("CREATE EXTERNAL TABLE k USING KAFKA OPTIONS (|", ["'topics' = ''", "'group_id' = ''"]),
        ("SHOW EXTERNAL TABLES |", ["IN", "LIKE"]),
        ("DROP STORAGE |", ["CONNECTION"]),
        ("DROP STREAM IF |", ["EXISTS"]),
        ("ROLLBACK |", ["STATEMENT"]),
        ("EXPLAIN |", ["SELECT", "REFRESH DYNAMIC TABLE"]),
        ("DESC |", ["STREAM", "EXTERNAL TABLE", "HISTORY"]),
        ("SHOW TABLE STREAMS |", ["IN", "LIKE", "WHERE", "LIMIT"]),
    ],
)
def test_keywords(marked: str, wanted: list[str]) -> None:
    found = offered(marked)
    assert [text for text in wanted if text not in found] == []


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT * FROM |",
        "SELECT * FROM | WHERE id = 1",
        "SELECT * FROM orders o JOIN |",
        "SELECT * FROM orders, |",
        "INSERT INTO |",
        "INSERT INTO TABLE |",
        "MERGE INTO orders USING |",
        "CREATE STREAM s ON TABLE |",
        "ALTER TABLE |",
        "DROP TABLE IF EXISTS |",
        "DESCRIBE |",
        "SELECT (SELECT max(id) FROM |",
        "DELETE FROM |",
        "DROP EXTERNAL TABLE |",
        "CREATE STREAM s ON EXTERNAL TABLE |",
        "UPDATE |",
        "SHOW COLUMNS IN |",
        "VACUUM |",
    ],
)
def test_relations(marked: str) -> None:
    assert set(offered(marked)) >= EVERY_RELATION


@pytest.mark.parametrize(
    ("marked", "found"),
    [
        ("DROP STREAM |", ["orders_st", "default", "sales", "`audit log`", "IF EXISTS"]),
        ("DROP TABLE STREAM IF EXISTS |", ["orders_st", "default", "sales", "`audit log`"]),
        ("DESC STREAM o|", ["orders_st", "`audit log`"][:1]),
        ("CREATE STREAM s ON STREAM o|", ["orders_st"]),
        ("SHOW CREATE STREAM |", ["orders_st", "default", "sales", "`audit log`"]),
        ("SELECT stream_has_data('|", ["'orders_st'"]),
        ("SELECT stream_has_data('o|')", ["'orders_st"]),
        ("SELECT * FROM tablestore_records('ord|", ["'orders'", "'orders_st'"]),
        ("SELECT * FROM tablestore_records('orders', '|", []),
        ("SELECT SYSTEM$STREAM_HAS_DATA('|", ["'orders_st'"]),
        ("CREATE STREAM s ON TABLE orders AT (STREAM => 'or|", ["'orders_st'"]),
        ("USE |", ["default", "sales", "`audit log`"]),
        ("SHOW STREAMS IN d|", ["default"]),
        ("SELECT * FROM `audit log`.|", ["seen", "seen_st"]),
        ("DROP STREAM `audit log`.|", ["seen_st"]),
        ("SELECT * FROM `op|", ["`open orders`"]),
        ("SELECT * FROM `op|` WHERE id = 1", ["`open orders"]),
        ("SELECT * FROM cl|", ["Clients"]),
        ("SELECT * FROM rders_|", ["orders_st"]),
    ],
)
def test_names(marked: str, found: list[str]) -> None:
    assert offered(marked) == found


@pytest.mark.parametrize(
    ("marked", "wanted", "unwanted"),
    [
        ("SELECT | FROM orders", ["id", "amount", "`order by`", "orders", "count("], ["name", "orders_st"]),
        ("SELECT o.| FROM orders o JOIN clients c", ["id", "amount", "`order by`"], ["name", "count("]),
        ("SELECT c.| FROM orders AS o JOIN clients AS c", ["client_id", "name"], ["id"]),
        ("SELECT c.na| FROM orders o, clients c", ["name"], ["client_id"]),
        ("SELECT orders.| FROM orders", ["id"], ["name"]),
        ("SELECT sales.orders.| FROM sales.orders", ["id"], ["name"]),
        ("SELECT * FROM orders o WHERE o.am|", ["amount"], ["id"]),
        ("SELECT * FROM orders o JOIN clients c ON c.client_id = |", ["id", "name", "o", "c"], []),
        ("INSERT INTO clients (|", ["client_id", "name"], ["count(", "SELECT"]),
        ("INSERT INTO clients (client_id, |) SELECT 1, 2", ["name"], ["count("]),
        ("UPDATE orders SET am|", ["amount"], []),
        (
            "MERGE INTO orders t USING orders_st s ON t.id = s.id WHEN MATCHED AND s.|",
            ["__change_type", "id", "amount"],
            ["METADATA$ACTION"],
        ),
        ("SELECT meta| FROM orders_st", ["METADATA$ACTION", "METADATA$ROW_ID"], ["id"]),
        ("SELECT meta| FROM orders", [], ["METADATA$ACTION"]),
        ("WITH x AS (SELECT 1) SELECT * FROM |", ["x", "orders"], []),
        ("SELECT * FROM (SELECT | FROM clients) q", ["name", "client_id"], []),
        ("SELECT stream_h|", ["stream_has_data("], []),
        ("SELECT name FROM clients; SELECT | FROM orders", ["amount"], ["name"]),
    ],
)
def test_columns(marked: str, wanted: list[str], unwanted: list[str]) -> None:
    found = offered(marked)
    assert [text for text in wanted if text not in found] == []
    assert [text for text in unwanted if text in found] == []


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT 'FROM |",
        "SELECT 'a|' FROM orders",
        "SELECT 1 -- FROM |",
        "/* FROM |",
        "SELECT 12|",
        "SELECT `id`|",
        "CREATE TABLE x|",
        "CREATE STREAM new|",
        "CREATE OR REPLACE TABLE STREAM |",
        "CREATE STREAM s ON TABLE orders WITH (TABLE_STREAM_MODE |",
        "DROP STREAM orders_st |",
        "REFRESH DYNAMIC TABLE orders |",
        "CREATE STORAGE CONNECTION new|",
        "CREATE EXTERNAL TABLE new|",
        "CREATE EXTERNAL TABLE k USING KAFKA CONNECTION |",
        "CREATE EXTERNAL TABLE k (to|",
        "SELECT * FROM orders WHERE x = $$ or|",
        'SELECT "or|',
    ],
)
def test_nothing(marked: str) -> None:
    before, after = marked.split("|")
    assert complete(before, after, SNAPSHOT).candidates == []


def test_the_word_is_replaced_with_its_quote() -> None:
    for marked, start in (("SELECT * FROM `op|", 14), ("SELECT am| FROM orders", 7), ("SELECT o.am| FROM orders o", 9)):
        assert complete(*marked.split("|"), SNAPSHOT).start == start


def test_what_is_lacking_is_told() -> None:
    empty = Snapshot()
    assert complete("SELECT * FROM ", "", empty).wants == {Want("default")}
    assert complete("SELECT * FROM audit.", "", empty).wants == {Want("audit")}
    assert complete("SELECT ", " FROM audit.seen s", empty).wants == {Want("audit", "seen")}
    # a name that is known not to be there is not asked for again and again
    assert complete("SELECT ", " FROM nosuch", SNAPSHOT).wants == set()
    assert complete("SELECT ", " FROM orders", SNAPSHOT).wants == set()


def test_limits() -> None:
    many = Snapshot(relations={"default": tuple(Relation(f"t{n}", "table") for n in range(10_000))})
    assert len(complete("SELECT * FROM ", "", many).candidates) == CANDIDATES_MAX
    deep = "SELECT " + "(" * 5000
    assert complete(deep, "", many).candidates != []


@pytest.mark.parametrize("end", range(0, 180, 3))
def test_no_text_is_too_odd(end: int) -> None:
    text = "MERGE INTO a.b t USING (SELECT * FROM `x``y` q, s WITH (CONSUME = TRUE)) s "
    text += "ON t.id = s.id AND 'it''s' = $$x$$ WHEN ; ) ; . , ' ` \\ é"
    complete(text[:end], text[end:], SNAPSHOT)
