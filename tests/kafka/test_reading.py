"""External tables and their streams as SELECT shows them, and what changes of tables and connections do to them."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import pytest
from pyspark.sql import Row

from tests.consume.support import TRACKED
from tests.kafka import topics
from tests.kafka.support import Place, sent
from tests.kafka.topics import Message

COLUMNS = ["topic", "partition", "offset", "timestamp", "timestamp_type", "headers", "key", "value"]
TIME_MS = 1_700_000_000_123


def test_all_columns_of_all_sorts_of_messages(place: Place) -> None:
    topic = place.topic(partitions=2, retention_ms=-1)  # the messages have been old for years
    messages = [
        Message(b"v", b"k", (("h", b"1"), ("h", None), ("", b"")), partition=0, timestamp=TIME_MS),
        Message(None, b"k", partition=0, timestamp=TIME_MS + 1),
        Message(b"", None, partition=0, timestamp=TIME_MS + 2),
        Message(b"\xff\x00", b"", partition=1, timestamp=TIME_MS + 3),
    ]
    topics.send(place.broker.bootstrap, topic, messages)
    headers = [[Row(key="h", value=b"1"), Row(key="h", value=None), Row(key="", value=b"")], None, None, None]
    expected = [
        (topic, p, o, TIME_MS + i, "CreateTime", headers[i], key, value)
        for i, (p, o, key, value) in enumerate(
            [(0, 0, b"k", b"v"), (0, 1, b"k", None), (0, 2, None, b""), (1, 0, b"", b"\xff\x00")]
        )
    ]
    place.stream()
    for relation in ("k", "s"):
        columns = "topic, partition, offset, unix_millis(timestamp), timestamp_type, headers, key, value"
        found = place.run(f"SELECT {columns} FROM {relation} ORDER BY partition, offset")
        assert [tuple(bytes(v) if isinstance(v, bytearray) else v for v in r) for r in found] == [
            tuple(row) for row in expected
        ], relation
    change = place.run(
        "SELECT *, METADATA$ACTION a, METADATA$ISUPDATE u, METADATA$ROW_ID i FROM s WHERE partition = 1"
    )[0]
    assert change.__fields__[:3] == ["__change_type", "__commit_version", "__commit_timestamp"]
    assert change.__fields__[3:-3] == COLUMNS
    assert (change["__change_type"], change["__commit_version"]) == ("INSERT", 0)
    assert change["__commit_timestamp"] == change["timestamp"]
    assert (change["a"], change["u"], change["i"]) == ("INSERT", False, "1:0")


def test_times_that_the_broker_sets(place: Place) -> None:
    topic = place.topic(message_timestamp_type="LogAppendTime")
    topics.send(place.broker.bootstrap, topic, [Message("x", timestamp=TIME_MS)])
    row = place.run("SELECT timestamp_type, timestamp FROM k")[0]
    assert row["timestamp_type"] == "LogAppendTime"
    assert abs(row["timestamp"].replace(tzinfo=timezone.utc).timestamp() - time.time()) < 600


def test_an_empty_topic_has_columns_and_no_rows(place: Place) -> None:
    place.topic(partitions=3)
    place.stream()
    assert place.run("SELECT * FROM k") == place.run("SELECT * FROM s") == []
    assert streamql_columns(place, "k") == COLUMNS
    assert place.value("SELECT count(*) FROM k") == place.value("SELECT count(*) FROM s") == 0
    assert not place.has_data()
    assert place.shown()["lag_versions"] == 0
    assert place.position() == {}


def streamql_columns(place: Place, relation: str) -> list[str]:
    return place.spark.table(relation).columns


def test_a_table_has_the_columns_that_it_names_in_their_order(place: Place) -> None:
    topic = place.topic("all")
    place.send(topic, "x")
    place.table("k", topic, "(value BINARY, `offset` BIGINT)")
    place.stream()
    assert place.run("SELECT * FROM k") == [Row(value=b"x", offset=0)]
    row = place.run("SELECT * FROM s")[0]
    assert row.__fields__[3:] == ["value", "offset"]
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        place.run("SELECT key FROM k")
    assert [r["col_name"] for r in place.run("DESCRIBE k")] == ["value", "offset"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"starting_offset": '{"0": 2}'}, sent([2, 3, 4], [0, 1])),
        ({"ending_offset": '{"0": 2, "1": 0}'}, sent([0, 1], [])),
        ({"starting_offset": '{"0": 1, "1": 1}', "ending_offset": '{"0": 2}'}, sent([1], [1])),
        ({"starting_offset": "latest"}, []),
        ({"starting_offset": '{"0": 4}', "ending_offset": '{"0": 2}'}, sent([], [0, 1])),
        ({"starting_offset": '{"0": 99, "7": 1}', "ending_offset": '{"1": 99}'}, sent([], [0, 1])),
    ],
)
def test_a_select_is_bounded_by_the_tables_offsets(
    place: Place, options: dict[str, str], expected: list[tuple[int, int]]
) -> None:
    topic = place.topic(partitions=2)
    place.send(topic, *"abcde")
    place.send(topic, *"ab", partition=1)
    place.table("k", topic, **options)
    assert place.positions("k") == expected


def test_a_stream_with_initial_rows_begins_where_its_table_does(place: Place) -> None:
    topic = place.topic(partitions=2)
    place.send(topic, *"abcde")
    place.send(topic, *"ab", partition=1)
    place.table("k", topic, starting_offset='{"0": 3}', ending_offset='{"0": 4}')
    place.stream()
    place.stream("from_now", clauses="")
    place.run('CREATE STREAM all_of_it ON EXTERNAL TABLE k AT (OFFSET => \'{"0": 0, "1": 0}\')')
    place.send(topic, "f")
    assert place.positions("s") == sent([3, 4, 5], [0, 1]), "the end of the table is no end of its streams"
    assert place.positions("from_now") == [(0, 5)]
    assert place.positions("all_of_it") == sent(range(6), range(2))


def test_many_forms_of_one_statement_see_the_same_messages(place: Place) -> None:
    topic = place.topic(partitions=2)
    place.run(f"CREATE TABLE names (id INT, name STRING) {TRACKED}")
    place.run("CREATE STREAM changed ON TABLE names")
    place.run("INSERT INTO names VALUES (0, 'zero'), (1, 'one'), (2, 'two')")
    place.stream()
    place.send(topic, "0", "1", "1")
    place.send(topic, "2", "7", partition=1)
    ids = "SELECT CAST(CAST(value AS STRING) AS INT) AS id, partition, offset FROM"
    joined = f"SELECT name, count(*) AS n FROM ({ids} s) m JOIN names USING (id) GROUP BY name ORDER BY name"
    assert [tuple(r) for r in place.run(joined)] == [("one", 2), ("two", 1), ("zero", 1)]
    streams = f"SELECT count(*) FROM ({ids} s) m JOIN changed c ON c.id = m.id"
    assert place.value(streams) == 4
    assert place.value("SELECT count(*) FROM s a JOIN s b ON a.partition = b.partition AND a.offset = b.offset") == 5
    assert (
        place.value("WITH c AS (SELECT * FROM s) SELECT count(*) FROM c JOIN k USING (partition, offset, value)") == 5
    )
    place.run("CREATE VIEW seen AS SELECT partition, offset FROM k")
    assert place.positions("seen") == sent(range(3), range(2))
    place.run("CREATE TEMPORARY VIEW behind AS SELECT partition, offset FROM s")
    assert place.positions("behind") == sent(range(3), range(2))
    place.run("DROP VIEW behind")
    place.spark.sql("DROP VIEW seen")
    assert place.position() == {"0": 0, "1": 0} or place.position() == {}, "reading moves nothing"


def test_a_cached_frame_keeps_its_rows(place: Place) -> None:
    topic = place.topic()
    place.stream()
    place.send(topic, "a")
    frame = place.spark.sql("SELECT offset FROM s").cache()
    try:
        assert frame.count() == 1
        place.send(topic, "b")
        assert frame.count() == 1
        assert place.value("SELECT count(*) FROM s") == place.value("SELECT count(*) FROM k") == 2
    finally:
        frame.unpersist()
    table = place.spark.table("k")
    assert (table.count(), table.filter("offset = 1").count()) == (2, 1)


def test_what_describe_and_show_say(place: Place) -> None:
    topic = place.topic(partitions=2)
    place.send(topic, "a")
    place.run("CREATE SCHEMA IF NOT EXISTS elsewhere")
    made = place.run("SHOW CREATE EXTERNAL TABLE k")[0][0]
    assert made.startswith("CREATE OR REPLACE EXTERNAL TABLE k")
    facts = {r["info_name"]: r["info_value"] for r in place.run("DESC EXTERNAL TABLE k")}
    assert facts["latest_position"] == '{"0": 1, "1": 0}'
    assert facts["earliest_position"] == '{"0": 0, "1": 0}'
    assert (facts["topics"], facts["partitions"], facts["connection"]) == (topic, "2", place.connection)
    assert facts["definition"] == made
    for form in ("DESC k", "DESCRIBE TABLE k", f"DESCRIBE {place.schema}.k"):
        assert [r["col_name"] for r in place.run(form)] == COLUMNS, form
    assert [r["name"] for r in place.run("SHOW EXTERNAL TABLES")] == ["k"]
    assert [r["name"] for r in place.run(f"SHOW EXTERNAL TABLES IN {place.schema} LIKE 'k*'")] == ["k"]
    assert place.run("SHOW EXTERNAL TABLES LIKE 'z%'") == place.run("SHOW EXTERNAL TABLES IN elsewhere") == []
    assert place.refused("SHOW EXTERNAL TABLES IN nowhere").code == "SCHEMA_NOT_FOUND"
    (row,) = place.run(f"SHOW CONNECTIONS LIKE '{place.connection}'")
    assert (row["type"], row["bootstrap_servers"]) == ("KAFKA", place.broker.bootstrap)
    connection = {r["info_name"]: r["info_value"] for r in place.run(f"DESC STORAGE CONNECTION {place.connection}")}
    assert connection["bootstrap.servers"] == place.broker.bootstrap
    topics.delete(place.broker.bootstrap, topic)
    facts = {r["info_name"]: r["info_value"] for r in place.run("DESC EXTERNAL TABLE k")}
    assert facts["invalid_reason"].startswith("STREAM_SOURCE_MISSING")
    assert [r["col_name"] for r in place.run("DESC k")] == COLUMNS, "columns are known without the topic"


# -- points in time


def test_points_in_time(place: Place) -> None:
    topic = place.topic(partitions=2)
    now = int(time.time() * 1000)
    times = [now - 6_000_000 + 1_000_000 * i for i in range(5)]
    topics.send(
        place.broker.bootstrap, topic, [Message(str(i), partition=i % 2, timestamp=t) for i, t in enumerate(times)]
    )

    def text(ms: int) -> str:
        return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")

    points = {
        f"TIMESTAMP AS OF '{text(times[1])}'": [2, 3, 4],
        f"AT (TIMESTAMP => '{text(times[1])}')": [2, 3, 4],
        f"BEFORE (TIMESTAMP => '{text(times[1])}')": [1, 2, 3, 4],
        f"AT (TIMESTAMP => '{text(times[1] - 1)}')": [1, 2, 3, 4],
        "AT (OFFSET => -3500)": [3, 4],
        "AT (OFFSET => -36000)": [0, 1, 2, 3, 4],
        "AT (OFFSET => 0)": [],
        """AT (OFFSET => '{"0": 1, "1": 2}')""": [2, 4],
    }
    for i, point in enumerate(points):
        place.stream(f"s{i}", clauses=point)
    # One query for all: each would be planned and compiled by itself.
    every = " UNION ALL ".join(
        f"SELECT {i} AS stream, CAST(value AS STRING) AS v FROM s{i}" for i in range(len(points))
    )
    found = place.run(every)
    for i, (point, expected) in enumerate(points.items()):
        assert sorted(int(r["v"]) for r in found if r["stream"] == i) == expected, point
    place.stream("copy", clauses="AT (STREAM => 's4')")
    assert place.value("SELECT count(*) FROM copy") == 2
    changes = f"SELECT count(*) FROM k CHANGES (INFORMATION => APPEND_ONLY) AT (TIMESTAMP => '{text(times[1])}')"
    assert place.value(changes) == 3
    assert place.value(f"{changes} END (TIMESTAMP => '{text(times[3])}')") == 2
    assert place.value("""SELECT count(*) FROM k CHANGES (INFORMATION => APPEND_ONLY) AT (STREAM => 's4')""") == 2
    place.send(topic, "later")
    place.run(f"ALTER STREAM copy SET OFFSET TIMESTAMP '{text(times[3])}'")
    assert place.value("SELECT count(*) FROM copy") == 2


# -- changes of tables and connections


def test_a_table_that_comes_back_continues_its_streams(place: Place) -> None:
    topic = place.topic()
    place.send(topic, "a")
    place.stream()
    place.run("DROP EXTERNAL TABLE k")
    assert place.refused("SELECT * FROM s").code == "STREAM_SOURCE_MISSING"
    assert place.shown()["invalid_reason"].startswith("STREAM_SOURCE_MISSING")
    place.table("k", topic)
    assert place.positions("s") == [(0, 0)]


def test_a_table_on_another_topic_is_another_source(place: Place) -> None:
    place.topic()
    place.stream()
    other = place.topic("other")
    place.table("k", other)
    found = place.refused("SELECT * FROM s")
    assert found.code == "STREAM_SOURCE_REPLACED"
    assert other in found.message
    place.run("CREATE OR REPLACE TABLE STREAM s ON TABLE k")
    assert place.positions("s") == []


def test_a_connection_that_is_changed_counts_from_the_next_statement(place: Place) -> None:
    topic = place.topic()
    place.send(topic, "a")
    place.stream()
    place.connect(place.connection, "127.0.0.1:9", "OPTIONS ('request.timeout.ms' = '60000')")
    place.run("SET spark.streamql.kafkaTimeout = 1s")
    try:
        assert place.refused("SELECT * FROM s").code == "KAFKA_UNREACHABLE"
        place.connect(place.connection, place.broker.bootstrap, "OPTIONS ('request.timeout.ms' = '60000')")
        assert place.positions("s") == [(0, 0)], "a setting of the user's is not in the way of the time-out"
    finally:
        place.run("RESET spark.streamql.kafkaTimeout")


def test_names_do_not_depend_on_case(place: Place) -> None:
    topic = place.topic()
    place.send(topic, "a")
    place.run("CREATE STREAM s ON TABLE K WITH (SHOW_INITIAL_ROWS = TRUE)")
    assert place.positions("S") == place.positions("K") == [(0, 0)]
    assert place.refused(f"DROP STORAGE CONNECTION {place.connection.upper()}").code == "CONNECTION_IN_USE"
    assert place.refused("CREATE TABLE K (id INT)").code == "NAME_ALREADY_IN_USE"
    assert place.refused("DROP TABLE K").code == "NAME_ALREADY_IN_USE"


def test_columns_may_be_written_in_any_case(place: Place) -> None:
    topic = place.topic("all")
    place.send(topic, "x")
    place.table("k", topic, "(VALUE BINARY, Timestamp_Type STRING)")
    assert [bytes(r[0]) for r in place.run("SELECT value FROM k")] == [b"x"]
    place.stream()
    assert place.value("SELECT timestamp_type FROM s") == "CreateTime"
    assert len(place.run("DESC EXTERNAL TABLE k")) > 5
