"""The 6-tuples of a table and an interval, in SQL."""

from __future__ import annotations

import pytest

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
    assert shop.spark.sql(count.format("0, 1")).first()[0] == 4  # type: ignore[index]
    assert shop.spark.sql(count.format("1")).first()[0] == 1  # type: ignore[index]
    assert shop.spark.sql(count.format("2, 2")).first()[0] == 0  # type: ignore[index]
    shop.run(
        f"CREATE TABLE {{s}}.log AS SELECT * FROM {relation} WHERE opType = 'U'",
        f"INSERT INTO {{s}}.log SELECT * FROM {relation}",
    )
    assert shop.spark.table(f"{shop.schema}.log").count() == 7


def test_what_the_relation_refuses(shop: Shop) -> None:
    shop.orders()
    shop.run("INSERT INTO {s}.orders VALUES (1, 'a', 1), (1, 'b', 1)", "CREATE STREAM {s}.changes ON TABLE {s}.orders")
    for arguments, code in (
        ("7", "INVALID_ARGUMENT"),
        ("'{s}.changes'", "INVALID_ARGUMENT"),
        ("'{s}.none'", "TABLE_NOT_FOUND"),
        ("'{s}.orders', 1, 0", "INVALID_POINT_IN_TIME"),
        ("'{s}.orders', 9", "INVALID_POINT_IN_TIME"),
        ("'{s}.orders', '2000-01-01', 1", "INVALID_POINT_IN_TIME"),
        ("'{s}.orders'", "PRIMARY_KEY_VIOLATED"),
    ):
        with pytest.raises(Exception, match=code):
            shop.spark.sql(f"SELECT * FROM tablestore_records({arguments.replace('{s}', shop.schema)})").collect()
    shop.run("DROP STREAM {s}.changes")
