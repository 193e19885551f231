"""The 6-tuples of a table and an interval, in SQL."""

from __future__ import annotations

from typing import Any

import pytest

from streamql.engine import relations
from streamql.features.tablestore.records import relation
from tests.tablestore.shop import Shop


def test_the_relation_holds_what_an_export_writes(shop: Shop) -> None:
    shop.orders(shards=2)
    shop.run(
        "INSERT INTO {s}.orders VALUES (1, 'a', 1.5), (2, NULL, NULL)", "UPDATE {s}.orders SET city = NULL WHERE id = 1"
    )
    relation = f"tablestore_records('{shop.schema}.orders')"
    before = shop.spark.sql(f"SELECT * FROM {relation} ORDER BY sequenceInfo").collect()
    assert [(r.id, r.columnName, r.columnValue, r.opType) for r in before if r.id == 1] == [
        (1, None, None, "DR"), (1, "city", "a", "U"), (1, "amount", "1.50", "U"), (1, "city", None, "DA")
    ]  # fmt: skip
    properties = shop.spark.sql(f"SHOW TBLPROPERTIES {shop.schema}.orders").collect()
    assert "tablestore.shards" not in [row.key for row in properties], "a query writes nothing"
    shop.job(isExportSequenceInfo=True)
    assert [r.asDict() for r in before] == sorted(shop.lines(), key=lambda t: t["sequenceInfo"])
    count = f"SELECT count(*) FROM tablestore_records('{shop.schema}.orders', {{}})"
    assert shop.spark.sql(count.format("0, 1")).collect()[0][0] == 4
    assert shop.spark.sql(count.format("1")).collect()[0][0] == 1
    assert shop.spark.sql(count.format("2, 2")).collect()[0][0] == 0
    shop.run(
        f"CREATE TABLE {{s}}.log AS SELECT * FROM {relation} WHERE opType = 'U'",
        f"INSERT INTO {{s}}.log SELECT * FROM {relation}",
    )
    assert shop.spark.table(f"{shop.schema}.log").count() == 7


def test_what_the_relation_refuses(shop: Shop) -> None:
    shop.orders()
    shop.run(
        "INSERT INTO {s}.orders VALUES (1, 'a', 1), (1, 'b', 1)",
        "CREATE STREAM {s}.changes ON TABLE {s}.orders",
        "CREATE STREAM {s}.initial ON TABLE {s}.orders SHOW_INITIAL_ROWS = TRUE",
        "CREATE STREAM {s}.appended ON TABLE {s}.orders APPEND_ONLY = TRUE",
    )
    for arguments, code in (
        ("7", "INVALID_ARGUMENT"),
        ("'{s}.changes', 1", "INVALID_ARGUMENT"),
        ("'{s}.initial'", "UNSUPPORTED_SOURCE"),
        ("'{s}.appended'", "UNSUPPORTED_SOURCE"),
        ("'{s}.none'", "TABLE_NOT_FOUND"),
        ("'{s}.orders', 1, 0", "INVALID_POINT_IN_TIME"),
        ("'{s}.orders', 9", "INVALID_POINT_IN_TIME"),
        ("'{s}.orders', '2000-01-01', 1", "INVALID_POINT_IN_TIME"),
        ("'{s}.orders'", "PRIMARY_KEY_VIOLATED"),
    ):
        with pytest.raises(Exception, match=code):
            shop.spark.sql(f"SELECT * FROM tablestore_records({arguments.replace('{s}', shop.schema)})").collect()
    shop.run(*(f"DROP STREAM {{s}}.{name}" for name in ("changes", "initial", "appended")))


@pytest.mark.parametrize("order", ["{s}.changes c JOIN {r} r", "{r} r JOIN {s}.changes c"])
def test_a_query_sees_one_interval_of_a_stream_and_of_its_records(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    shop.orders()
    shop.run("CREATE STREAM {s}.changes ON TABLE {s}.orders", "INSERT INTO {s}.orders VALUES (1, 'a', 1)")
    read, reads = relations.read_stream, []

    def reading(*arguments: Any, **more: Any) -> Any:
        reads.append(read(*arguments, **more))
        if len(reads) == 1:  # between the two references
            shop.run("INSERT INTO {s}.orders VALUES (2, 'b', 2)")
        return reads[-1]

    for module in (relations, relation):
        monkeypatch.setattr(module, "read_stream", reading)
    source = order.replace("{s}", shop.schema).replace("{r}", f"tablestore_records('{shop.schema}.changes')")
    found = shop.spark.sql(f"SELECT c.id AS net, r.id AS told FROM {source} ON c.id = c.id").collect()
    assert {tuple(row) for row in found} == {(1, 1)}
    assert len(reads) == 2
    shop.run("DROP STREAM {s}.changes")


def test_a_statement_that_reads_the_records_of_a_stream_moves_it_once(shop: Shop) -> None:
    shop.orders(shards=2)
    shop.run("INSERT INTO {s}.orders VALUES (7, 'old', 1)", "CREATE STREAM {s}.changes ON TABLE {s}.orders")
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1)", "UPDATE {s}.orders SET city = 'b' WHERE id = 1")
    relation = f"tablestore_records('{shop.schema}.changes')"

    def shown() -> list[tuple[object, ...]]:
        rows = shop.spark.sql(f"SELECT * FROM {relation} ORDER BY sequenceInfo").collect()
        return [(r.id, r.columnName, r.columnValue, r.opType) for r in rows]

    expected = [(1, None, None, "DR"), (1, "city", "a", "U"), (1, "amount", "1.00", "U"), (1, "city", "b", "U")]
    assert shown() == shown() == expected, "a query moves nothing"
    shop.run(f"CREATE TABLE {{s}}.log AS SELECT * FROM {relation}")
    assert shown() == []
    assert shop.spark.table(f"{shop.schema}.log").count() == 4
    shop.run(
        "DELETE FROM {s}.orders WHERE id = 7",
        f"INSERT INTO {{s}}.log SELECT * FROM {relation}",
        f"INSERT INTO {{s}}.log SELECT * FROM {relation}",
    )
    assert shop.spark.table(f"{shop.schema}.log").where("opType = 'DR' AND id = 7").count() == 1
    assert shop.spark.table(f"{shop.schema}.log").count() == 5
    assert shop.spark.table(f"{shop.schema}.changes").count() == 0, "the offset has moved"
    with pytest.raises(Exception, match="boom"):
        shop.run(
            "INSERT INTO {s}.orders VALUES (2, 'c', 2)",
            f"INSERT INTO {{s}}.log SELECT id, raise_error('boom'), 1, '', '', '' FROM {relation}",
        )
    assert [t[-1] for t in shown()] == ["DR", "U", "U"], "a statement that fails moves nothing"
    late = shop.spark.sql(f"SELECT * FROM {relation}")
    shop.run(f"INSERT INTO {{s}}.log SELECT * FROM {relation}", "INSERT INTO {s}.orders VALUES (3, 'd', NULL)")
    late.writeTo(f"{shop.schema}.log").append()  # another statement was first: this one takes what is left
    assert shop.spark.table(f"{shop.schema}.log").count() == 10
    both = f"SELECT (SELECT count(*) FROM {relation}), (SELECT count(*) FROM {shop.schema}.changes)"
    shop.run(
        "INSERT INTO {s}.orders VALUES (4, 'e', 1)",
        f"CREATE TABLE {{s}}.counts AS {both.replace('), (', ') AS a, (')} AS b",
    )
    assert tuple(shop.spark.table(f"{shop.schema}.counts").first() or ()) == (3, 1)
    assert shown() == []
    shop.run(
        "INSERT INTO {s}.orders VALUES (5, 'f', 1)",
        "BEGIN TRANSACTION",
        f"INSERT INTO {{s}}.log SELECT * FROM {relation}",
        "COMMIT",
    )
    assert (shop.spark.table(f"{shop.schema}.log").count(), shown()) == (13, [])
    shop.run("DROP STREAM {s}.changes")
