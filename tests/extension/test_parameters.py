"""Parameters of statements: those of Spark's, and of ours. Delta's parser, which ours stands before, forgets them."""

from __future__ import annotations

import datetime
import decimal

import pytest
from pyspark.sql import SparkSession

import streamql
from streamql.dialect import bind
from streamql.errors import StreamqlError
from tests.consume.support import fresh_schema, run
from tests.lines import HAS_PARAMETERS


@pytest.fixture(scope="module")
def spark_with_stream(spark: SparkSession) -> SparkSession:
    fresh_schema(spark, "parameters")
    run(spark, "CREATE TABLE t (id INT, v STRING)")
    run(spark, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')")
    run(spark, "INSERT INTO t SELECT id, concat('v', id) FROM range(10)")
    run(spark, "CREATE TABLE x (id INT, v STRING)")
    run(spark, "CREATE STREAM u ON TABLE t AT (VERSION => 2)")
    run(spark, "DELETE FROM t WHERE id = 1000")
    run(spark, "INSERT INTO t VALUES (100, 'v100')")
    return spark


def test_of_sparks_statements(spark_with_stream: SparkSession) -> None:
    spark = spark_with_stream
    assert spark.sql("SELECT :x + 1 AS y", args={"x": 1}).first() == (2,)
    assert spark.sql("SELECT v FROM t WHERE id = ? AND v <> ?", args=[3, "it's; --"]).collect() == [("v3",)]
    assert spark.sql("SELECT ':x' AS text, :x AS x -- :x", args={"x": "a:x"}).first() == (":x", "a:x")
    assert spark.sql("EXECUTE IMMEDIATE 'SELECT ? AS one' USING 1").first() == (1,)
    assert spark.sql("SELECT {n} AS n", n=4).first() == (4,)
    spark.sql("SET VAR_OF_MINE = 5")
    assert spark.sql("SELECT ${VAR_OF_MINE} + :x AS six", args={"x": 1}).first() == (6,)
    # Values stay values: no variable is looked up in them, and none becomes a part of what stands beside it.
    for value in ("${env:HOME}", "${VAR_OF_MINE}", "it's", "a\\b\n:x ?", "$' '{x}"):
        assert spark.sql("SELECT :x AS x", args={"x": value}).first() == (value,)
        assert spark.sql("SELECT ? AS x, METADATA$ACTION FROM u", args=[value]).first() == (value, "INSERT")
    assert spark.sql("SELECT 5 -?, ? AS x", args=[-1, "\n OR true --'"]).first() == (6, "\n OR true --'")
    assert spark.sql("SELECT 5 -?, METADATA$ACTION, ? AS x FROM u", args=[-1, "\n'"]).first() == (6, "INSERT", "\n'")
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.timezone.utc)
    values = {
        "a": None,
        "b": when,
        "c": decimal.Decimal("-1.50"),
        "d": bytearray(b"x'\0"),
        "e": 1 << 40,
        "f": 1.5e300,
        "g": True,
    }
    row = spark.sql(f"SELECT {', '.join(':' + name for name in values)}, METADATA$ACTION FROM u", args=values).first()
    assert row is not None
    assert (*row[:1], row[1].astimezone(datetime.timezone.utc), *row[2:-1]) == tuple(values.values())
    with pytest.raises(Exception, match="UNBOUND_SQL_PARAMETER"):
        spark.sql("SELECT :x AS y")
    with pytest.raises(Exception, match="UNBOUND_SQL_PARAMETER"):
        spark.sql("SELECT :x AS y", args={"z": 1})


@pytest.mark.skipif(not HAS_PARAMETERS, reason="the parser does not see the parameters there")
def test_of_ours(spark_with_stream: SparkSession) -> None:
    spark = spark_with_stream
    spark.sql("CREATE STREAM s ON TABLE t AT (VERSION => :v)", args={"v": 2})
    spark.sql("INSERT INTO x SELECT id, v FROM s WHERE id < :less", args={"less": 4})
    assert spark.table("x").count() == 4
    assert spark.table("s").count() == 0
    assert streamql.sql("SELECT stream_has_data(?) AS d", spark, ["s"]).first() == (False,)
    run(spark, "UPDATE t SET v = 'w' WHERE id = 9")
    streamql.sql("CREATE TABLE y AS SELECT id, :tag AS tag FROM s", spark, {"tag": "new"})
    assert set(spark.table("y").collect()) == {(9, "new")}
    with pytest.raises(StreamqlError, match="STREAM_NOT_FOUND"):
        streamql.sql("SELECT stream_has_data(:name)", spark, {"name": "ss"})
    with pytest.raises(StreamqlError, match=r"\[INVALID_ARGUMENT\] the parameter :w has no value \(line 1, column 43"):
        streamql.sql("CREATE STREAM r ON TABLE t AT (VERSION => :w)", spark, {"v": 2})
    spark.sql("MERGE INTO x USING s ON x.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, ?)", args=["it's"])
    assert spark.sql("SHOW STREAMS LIKE :like", args={"like": "s"}).count() == 1

    with pytest.raises(StreamqlError, match="INVALID_POINT_IN_TIME"):
        streamql.sql("CREATE STREAM r ON TABLE t AT (VERSION => ?)", spark, [-(1 << 40)])
    spark.sql("EXECUTE IMMEDIATE 'CREATE STREAM r ON TABLE t AT (VERSION => ?)' USING 3")
    spark.sql("EXECUTE IMMEDIATE 'ALTER STREAM r SET OFFSET VERSION :v' USING 4L AS v")


def test_binding() -> None:
    assert bind("SELECT ':a', :a, x::INT, \"?\" -- :a\n, :ab", {"a": "1", "ab": "'b'"}) == (
        "SELECT ':a', 1, x::INT, \"?\" -- :a\n, 'b'"
    )
    assert bind("? + ?", ["1", "2"]) == "1 + 2"
    assert bind("CAST(a AS STRUCT<b:INT, c: INT>), d:e, f[1]:e, : x, :`x`", {"x": "1", "INT": "2", "e": "3"}) == (
        "CAST(a AS STRUCT<b:INT, c: INT>), d:e, f[1]:e, 1, 1"
    )
    with pytest.raises(StreamqlError, match=r"the parameter \? has no value \(line 2"):
        bind("?\n?", ["1"])


def test_columns_are_asked_for_without_reading(spark_with_stream: SparkSession) -> None:
    """DESCRIBE in a transaction pins nothing, and needs no history."""
    spark = spark_with_stream
    run(spark, "CREATE STREAM d ON TABLE t")
    run(spark, "BEGIN TRANSACTION")
    assert [row[0] for row in run(spark, "DESCRIBE d")] == [row[0] for row in run(spark, "SHOW COLUMNS IN d")]
    other = spark.newSession()
    run(other, f"USE {spark.catalog.currentDatabase()}")
    run(other, "INSERT INTO t VALUES (200, 'later')")
    run(spark, "INSERT INTO x SELECT id, v FROM d")
    run(spark, "COMMIT")
    assert spark.table("x").where("id = 200").count() == 1
    assert len(run(spark, "DESCRIBE EXTENDED d")) == 5
    with pytest.raises(Exception, match=r"SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE|TABLE_OR_VIEW_NOT_FOUND"):
        run(spark, f"SHOW COLUMNS IN {spark.catalog.currentDatabase()}.d IN default")
