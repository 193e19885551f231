"""Statements and points in time that external tables and their streams refuse."""

from __future__ import annotations

import pytest

from tests.consume.support import TRACKED
from tests.kafka import topics
from tests.kafka.support import Place


def test_points_that_a_topic_does_not_have(place: Place) -> None:
    topic = place.topic(partitions=2)
    place.send(topic, *"abc")
    topics.delete_records(place.broker.bootstrap, topic, {0: 1})
    for point, said in {
        "AT (VERSION => 0)": "no versions",
        "VERSION AS OF 0": "no versions",
        """AT (OFFSET => '{"0": 0, "1": 0}')""": "it has 1 to 3",
        """AT (OFFSET => '{"0": 4, "1": 0}')""": "it has 1 to 3",
        """AT (OFFSET => '{"0": 1, "1": 0, "2": 0}')""": "no partition 2",
        """AT (OFFSET => '{"0": 1}')""": "partition 1 of the topic",
        "AT (TIMESTAMP => '2999-01-01')": "lies in the future",
        "TIMESTAMP AS OF '2999-01-01'": "lies in the future",
        "AT (OFFSET => 5)": "lies in the future",
    }.items():
        found = place.refused(f"CREATE STREAM x ON TABLE k {point}")
        assert found.code == "INVALID_POINT_IN_TIME", point
        assert said in found.message, point
    place.stream()
    for action in ("VERSION 0", """'{"0": 0}'""", """'{"5": 0}'""", "TIMESTAMP '2999-01-01'"):
        assert place.refused(f"ALTER STREAM s SET OFFSET {action}").code == "INVALID_POINT_IN_TIME", action
    place.run(f"CREATE TABLE t (id BIGINT) {TRACKED}")
    place.stream("on_t", "t", "")
    for text in (
        """ALTER STREAM on_t SET OFFSET '{"0": 1}'""",
        """CREATE STREAM y ON TABLE t AT (OFFSET => '{"0": 1}')""",
        "CREATE STREAM y ON TABLE k AT (STREAM => 'on_t')",
    ):
        assert place.refused(text).code == "INVALID_POINT_IN_TIME", text


def test_statements_that_an_external_table_refuses(place: Place) -> None:
    place.topic()
    place.stream()
    place.run(f"CREATE TABLE t (id BIGINT) {TRACKED}")
    for text, code in {
        "CREATE TABLE STREAM x ON TABLE k WITH (TABLE_STREAM_MODE = STANDARD)": "INVALID_PROPERTY",
        "SELECT * FROM k CHANGES (INFORMATION => DEFAULT) AT (OFFSET => -5)": "INVALID_PROPERTY",
        "SELECT * FROM k CHANGES (INFORMATION => APPEND_ONLY) AT (VERSION => 1)": "INVALID_POINT_IN_TIME",
        "SELECT * FROM t AT (STREAM => 's')": "INVALID_POINT_IN_TIME",
        "SELECT * FROM k END (STREAM => 's')": "INVALID_POINT_IN_TIME",
        "SELECT * FROM k AT (VERSION => 1)": "NOT_A_DELTA_TABLE",
        "CREATE STREAM x ON EXTERNAL TABLE t": "UNSUPPORTED_SOURCE",
        "CREATE STREAM x ON TABLE nothing": "TABLE_NOT_FOUND",
        "CREATE STREAM x ON VIEW k": "UNSUPPORTED_SOURCE",
        "SELECT * FROM k WITH (startingOffsets = 'latest')": "INVALID_PROPERTY",
        "SELECT * FROM k WITH (MAX_BATCH_SIZE = 1)": "INVALID_PROPERTY",
        "SELECT * FROM s WITH (startingOffsets = 'latest')": "INVALID_PROPERTY",
        "INSERT INTO k VALUES (1)": "UNSUPPORTED_TARGET",
        "INSERT INTO k SELECT * FROM k": "UNSUPPORTED_TARGET",
        "DELETE FROM k": "UNSUPPORTED_TARGET",
        "UPDATE k SET value = NULL": "UNSUPPORTED_TARGET",
        "MERGE INTO k USING s ON k.offset = s.offset WHEN NOT MATCHED THEN INSERT *": "UNSUPPORTED_TARGET",
        "CREATE TABLE k (id INT)": "NAME_ALREADY_IN_USE",
        "CREATE OR REPLACE TABLE k AS SELECT 1 AS a": "NAME_ALREADY_IN_USE",
        "CREATE VIEW k AS SELECT 1 AS a": "NAME_ALREADY_IN_USE",
        "CREATE STREAM k ON TABLE t": "NAME_ALREADY_IN_USE",
        "ALTER STREAM s RENAME TO k": "NAME_ALREADY_IN_USE",
        "DROP TABLE k": "NAME_ALREADY_IN_USE",
        "DROP STREAM k": "STREAM_NOT_FOUND",
        f"DROP SCHEMA {place.schema}": "NAME_ALREADY_IN_USE",
        f"DROP SCHEMA {place.schema} CASCADE": "NAME_ALREADY_IN_USE",
        f"DROP STORAGE CONNECTION {place.connection}": "CONNECTION_IN_USE",
        "DROP STORAGE CONNECTION nothing": "CONNECTION_NOT_FOUND",
        "DROP EXTERNAL TABLE nothing": "EXTERNAL_TABLE_NOT_FOUND",
        "DROP EXTERNAL TABLE t": "EXTERNAL_TABLE_NOT_FOUND",
        "DROP EXTERNAL TABLE s": "EXTERNAL_TABLE_NOT_FOUND",
        "DESC EXTERNAL TABLE t": "EXTERNAL_TABLE_NOT_FOUND",
        "SELECT stream_has_data('k')": "STREAM_NOT_FOUND",
    }.items():
        assert place.refused(text).code == code, text
    place.run("DROP STORAGE CONNECTION IF EXISTS nothing")
    place.run("DROP EXTERNAL TABLE IF EXISTS nothing")
    make = "{} EXTERNAL TABLE {} USING KAFKA OPTIONS ('group_id' = 'g', 'topics' = '{}') CONNECTION {}"
    topic = f"{place.schema}.k"
    for text, code in {
        make.format("CREATE", "k", topic, place.connection): "NAME_ALREADY_IN_USE",
        make.format("CREATE", "t", topic, place.connection): "NAME_ALREADY_IN_USE",
        make.format("CREATE OR REPLACE", "t", topic, place.connection): "NAME_ALREADY_IN_USE",
        make.format("CREATE", "s", topic, place.connection): "NAME_ALREADY_IN_USE",
        make.format("CREATE", "x", "no_such_topic", place.connection): "TOPIC_NOT_FOUND",
        make.format("CREATE", "x", topic, "no_such_connection"): "CONNECTION_NOT_FOUND",
        make.format("CREATE", "nowhere.x", topic, place.connection): "SCHEMA_NOT_FOUND",
    }.items():
        assert place.refused(text).code == code, text
    again = f"CREATE STORAGE CONNECTION {place.connection} TYPE KAFKA BOOTSTRAP_SERVERS = ['h:1']"
    assert place.refused(again).code == "NAME_ALREADY_IN_USE"
    place.run(again.replace("CONNECTION ", "CONNECTION IF NOT EXISTS ", 1))
    assert place.positions("k") == [], "IF NOT EXISTS changed nothing"


def test_what_is_not_sql_refuses_an_external_table_too(place: Place) -> None:
    place.topic()
    place.stream()
    with pytest.raises(Exception, match="UNSUPPORTED_STATEMENT"):
        place.spark.readStream.table("k")
    rows = place.spark.range(1)
    for write in (
        lambda: rows.writeTo("k").append(),
        lambda: rows.write.insertInto("k"),
        lambda: rows.write.saveAsTable("k"),
        lambda: rows.write.mode("append").saveAsTable("k"),
        lambda: rows.writeTo("k").createOrReplace(),
    ):
        with pytest.raises(Exception, match=r"UNSUPPORTED_TARGET|NAME_ALREADY_IN_USE|TABLE_OR_VIEW_NOT_FOUND"):
            write()
    assert place.run("SHOW TABLES") == []


def test_time_travel_of_an_external_table_is_an_error(place: Place) -> None:
    topic = place.topic()
    place.send(topic, "a")
    for clause in ("TIMESTAMP AS OF '2020-01-01'", "VERSION AS OF 0"):
        with pytest.raises(Exception, match=r"(?i)time travel|UNSUPPORTED|TABLE_OR_VIEW_NOT_FOUND"):
            place.run(f"SELECT * FROM k {clause}")
