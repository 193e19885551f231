"""Records by shard and page, through resharding and over the end of what is retained."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import streamql
from streamql.delta.jvm import jvm
from streamql.errors import StreamqlError
from streamql.features.tablestore import reader as reader_module
from streamql.features.tablestore.formats.records import Record
from streamql.features.tablestore.reader import StreamReader


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    name = f"reader_{abs(hash(str(tmp_path))) % 10**9}"
    spark.sql(f"CREATE SCHEMA {name}")
    spark.sql(
        f"CREATE TABLE {name}.t (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
        "'delta.enableInCommitTimestamps' = 'true', 'tablestore.primary_key' = 'id', 'tablestore.shard_count' = '2')"
    )
    yield f"{name}.t"
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def read(reader: StreamReader, iterator: str | None, limit: int) -> tuple[list[Record], str | None]:
    """All records from an iterator on, by pages."""
    found: list[Record] = []
    while iterator is not None:
        page = reader.get_stream_record(iterator, limit)
        assert len(page.records) <= limit
        found += page.records
        iterator = page.next_iterator
        if not page.records:
            break
    return found, iterator


def test_pages_shards_and_children(spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "AHEAD_RECORDS", 7)
    spark.sql(f"INSERT INTO {table} SELECT CAST(id AS INT), 'a' FROM range(20)")
    spark.sql(f"UPDATE {table} SET v = 'b' WHERE id < 10")
    reader = streamql.StreamReader(spark)
    (summary,) = reader.list_streams(table)
    stream = summary.stream_id
    shards = reader.describe_stream(stream).shards
    assert [s.id for s in shards] == ["0000-0000", "0000-0001"]
    records, at_end = {}, {}
    for shard in shards:
        begin = reader.get_shard_iterator(stream, shard.id)
        records[shard.id], at_end[shard.id] = read(reader, begin, 3)
        assert read(StreamReader(spark), begin, 100)[0] == records[shard.id], "an iterator can be used again, anywhere"
        assert at_end[shard.id] is not None
    assert sum(map(len, records.values())) == 30
    assert {r.key[0] for r in records["0000-0000"]}.isdisjoint(r.key[0] for r in records["0000-0001"])
    assert all(r.position < s.position for of in records.values() for r, s in itertools.pairwise(of))

    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('tablestore.shard_count' = '4')")
    spark.sql(f"DELETE FROM {table} WHERE id < 5")
    description = reader.describe_stream(stream, limit=3)
    assert [s.id for s in description.shards] == ["0000-0000", "0000-0001", "0001-0000"]
    assert description.next_shard == "0001-0001"
    later = reader.describe_stream(stream, description.next_shard).shards
    assert next((s.id, s.parents, s.siblings) for s in later) == ("0001-0001", ("0000-0001",), ("0001-0003",))
    with pytest.raises(StreamqlError) as e:
        reader.get_shard_iterator(stream, "0001-0001")
    assert e.value.code == "PARENT_SHARD_UNREAD"
    assert StreamReader(spark).get_shard_iterator(stream, "0001-0001", parents_read=True)
    for shard_id, iterator in at_end.items():
        assert iterator is not None
        assert reader.get_stream_record(iterator).next_iterator is None, shard_id
    children = [read(reader, reader.get_shard_iterator(stream, f"0001-000{i}"), 2)[0] for i in range(4)]
    assert sorted(r.key[0] for of in children for r in of) == [0, 1, 2, 3, 4]


def test_times_and_what_is_refused(spark: SparkSession, table: str) -> None:
    for i in range(3):
        spark.sql(f"INSERT INTO {table} VALUES ({i}, 'a')")
    reader = StreamReader(spark)
    stream = reader.list_streams(table)[0].stream_id
    all_records = [
        r for s in ("0000-0000", "0000-0001") for r in read(reader, reader.get_shard_iterator(stream, s), 9)[0]
    ]
    middle = next(r for r in all_records if r.key == (1,))
    found = [
        r
        for s in ("0000-0000", "0000-0001")
        for r in read(reader, reader.get_shard_iterator(stream, s, middle.time_ms), 9)[0]
    ]
    assert {r.key for r in found} == {(1,), (2,)}
    begin = reader.get_shard_iterator(stream, "0000-0000")
    for call, code in (
        (lambda: reader.get_stream_record("nonsense"), "INVALID_ITERATOR"),
        (lambda: reader.get_stream_record(begin, 0), "INVALID_ARGUMENT"),
        (lambda: reader.get_shard_iterator(stream, "0009-0000"), "SHARD_NOT_FOUND"),
        (lambda: reader.describe_stream("nonsense"), "INVALID_ARGUMENT"),
        (lambda: reader.describe_stream(stream + "1"), "STREAM_NOT_FOUND"),
        (lambda: reader.list_streams(table + "x"), "TABLE_NOT_FOUND"),
    ):
        with pytest.raises(StreamqlError) as e:
            call()
        assert e.value.code == code


def test_expired_records_are_an_error_that_names_the_earliest_time(spark: SparkSession, table: str) -> None:
    for i in range(12):
        spark.sql(f"INSERT INTO {table} VALUES ({i}, 'a')")
    reader = StreamReader(spark)
    stream = reader.list_streams(table)[0].stream_id
    begin = reader.get_shard_iterator(stream, "0000-0000")
    location = spark.sql(f"DESCRIBE DETAIL {table}").first()
    assert location is not None
    for version in range(10):
        Path(location["location"].removeprefix("file:"), "_delta_log", f"{version:020d}.json").unlink()
    jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
    reader = StreamReader(spark)
    earliest = reader.describe_stream(stream).earliest_ms
    with pytest.raises(StreamqlError, match="begins at") as e:
        reader.get_stream_record(begin)
    assert (e.value.code, e.value.facts["earliest_time_ms"]) == ("STREAM_STALE", earliest)
    with pytest.raises(StreamqlError, match="begins at"):
        reader.get_shard_iterator(stream, "0000-0000", 0)
    assert read(reader, reader.get_shard_iterator(stream, "0000-0000"), 5)[1] is not None
