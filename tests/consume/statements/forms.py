"""Every form that a consuming statement comes in, and by what each is matched; as a program, prints that as JSON.

python -m tests.consume.statements.forms DATA SCHEMA
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from unittest.mock import patch

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import streamql
from streamql.consume.transaction import Transaction
from streamql.delta.command import Command
from tests.consume.support import run
from tests.small import SHORT_LIVED

TEXTS = (
    "INSERT INTO b SELECT id, v FROM s",
    "INSERT INTO b BY NAME SELECT id, v FROM s",
    "INSERT OVERWRITE b SELECT id, v FROM s",
    "INSERT INTO b REPLACE WHERE id > 3 SELECT id, v FROM s",
    "INSERT INTO b SELECT id, v FROM s WHERE id IN (SELECT id FROM t)",
    "WITH n AS (SELECT id, v FROM s) INSERT INTO b SELECT * FROM n UNION ALL SELECT * FROM n",
    "INSERT INTO b WITH n AS (SELECT id, v FROM s) SELECT * FROM n",
    "FROM s INSERT INTO b SELECT id, v WHERE id < 500 INSERT INTO b SELECT id, v WHERE id >= 500",
    "MERGE INTO b USING s ON b.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
    "CREATE TABLE c AS SELECT id, v FROM s",
    "CREATE TABLE c AS WITH n AS (SELECT id, v FROM s) SELECT * FROM n",
    "CREATE TABLE c TBLPROPERTIES ('x' = 'y') AS SELECT id, v FROM s",
    "CREATE OR REPLACE TABLE b AS SELECT id, v FROM s",
    "REPLACE TABLE b AS SELECT id, v FROM s",
    "EXECUTE IMMEDIATE 'INSERT INTO b SELECT id, v FROM s'",
    "EXECUTE IMMEDIATE 'CREATE TABLE c AS SELECT id, v FROM s'",
    "EXECUTE IMMEDIATE 'CREATE TABLE c AS SELECT id, v FROM s WHERE id > ?' USING 3",
    "EXECUTE IMMEDIATE 'CREATE TABLE c AS SELECT id, v FROM s WHERE id > ?' USING 4",
)


def followed(spark: SparkSession, point: str) -> DataFrame:
    """A table at a stream or at its END, joined with the stream."""
    table = spark.sql(f"SELECT id, v FROM t {point} (STREAM => 's')")
    return table.join(spark.table("s").select("id"), "id")


def writers(spark: SparkSession) -> dict[str, Callable[[], object]]:
    """The same rows of stream s, written in different ways."""

    def rows() -> DataFrame:
        return spark.table("s").select("id", "v")

    def named() -> DataFrame:
        return spark.sql("WITH n AS (SELECT id, v FROM s) SELECT * FROM n")

    def joined(side: str) -> DataFrame:
        return (
            rows().alias("l").crossJoin(spark.table("s").select("id", "v").alias("r")).select(f"{side}.id", f"{side}.v")
        )

    def valued(v: Column) -> object:
        return rows().withColumn("v", v).writeTo("b").append()

    def one_of_many(last: str) -> Column:
        return F.coalesce(*[F.lit(None).cast("bigint")] * 30, F.expr(last))

    def plus(x: Column) -> Column:
        return x + 1

    def of_two(inner: bool) -> Column:
        return F.transform(F.array("v"), lambda x: F.transform(F.array("id"), lambda y: y if inner else x)[0])[0]

    def merged(condition: str) -> object:
        target = DeltaTable.forName(spark, "b").alias("b")
        return target.merge(rows().alias("x"), "b.id = x.id").whenNotMatchedInsertAll(condition).execute()

    def saved(**options: str) -> object:
        path = spark.sql("DESCRIBE DETAIL b").collect()[0]["location"]
        return rows().write.format("delta").mode("overwrite").options(**options).save(path)

    return {
        "append": lambda: rows().writeTo("b").append(),
        "append of a text": lambda: named().writeTo("b").append(),
        "append of a part": lambda: rows().sample(0.5).writeTo("b").append(),
        "append of a join's left": lambda: joined("l").writeTo("b").append(),
        "append of a join's right": lambda: joined("r").writeTo("b").append(),
        "append of what a lambda makes": lambda: valued(F.transform(F.array("v"), plus)[0]),
        "append of two lambdas": lambda: valued(of_two(inner=False)),
        "append of two lambdas' other": lambda: valued(of_two(inner=True)),
        "append of what is drawn": lambda: valued((F.rand() * 10).cast("bigint")),
        "append of new names": lambda: valued(F.length(F.expr("uuid()"))),
        "append of what looks like a column 1": lambda: valued(F.length(F.lit("#1"))),
        "append of what looks like a column 2": lambda: valued(F.length(F.lit("#2"))),
        "append of one of many 1": lambda: valued(one_of_many("abs(v)")),
        "append of one of many 2": lambda: valued(one_of_many("- v")),
        "overwrite 1": lambda: rows().writeTo("b").overwrite(F.col("id") > 1),
        "overwrite 2": lambda: rows().writeTo("b").overwrite(F.col("id") > 2),
        "overwritePartitions": lambda: rows().writeTo("p").overwritePartitions(),
        "append of a table at the begin": lambda: followed(spark, "AT").writeTo("b").append(),
        "append of a table at the end": lambda: followed(spark, "END").writeTo("b").append(),
        "create": lambda: rows().writeTo("c").create(),
        "create of a text": lambda: named().writeTo("c").create(),
        "create of a text, with a property": lambda: named().writeTo("c").tableProperty("x", "y").create(),
        "create, with a property": lambda: rows().writeTo("c").tableProperty("x", "y").create(),
        "create, partitioned": lambda: rows().writeTo("c").partitionedBy(F.col("v")).create(),
        "createOrReplace": lambda: rows().writeTo("b").createOrReplace(),
        "saveAsTable": lambda: rows().write.option("x", "y").saveAsTable("c"),
        "saveAsTable, overwriting": lambda: rows().write.mode("overwrite").saveAsTable("b"),
        "insertInto, overwriting": lambda: rows().write.insertInto("b", overwrite=True),
        "path": lambda: saved(),
        "path, where 1": lambda: saved(replaceWhere="id > 1"),
        "path, where 2": lambda: saved(replaceWhere="id > 2"),
        "DeltaTable.merge 1": lambda: merged("x.v > 1"),
        "DeltaTable.merge 2": lambda: merged("x.v > 2"),
    }


def fingerprints(spark: SparkSession, schema: str) -> dict[str, list[str]]:
    """Of each form, by what a transaction knows its statements again. Nothing is written."""
    spark.sql(f"USE {schema}")
    forms: dict[str, Callable[[], object]] = {text: partial(run, spark, text) for text in TEXTS}
    found: dict[str, list[str]] = {}
    streamql.sql("BEGIN TRANSACTION", spark)
    for name, write in {**forms, **writers(spark)}.items():

        def noted(_: Transaction, command: Command, name: str = name) -> None:
            found[name] = [command.fingerprint(i) for i in range(command.count)]
            raise RuntimeError("it is not to run")

        with patch.object(Transaction, "run", noted), suppress(Exception):
            write()
    streamql.sql("ROLLBACK", spark)
    return found


if __name__ == "__main__":
    from streamql.sessions import session

    own = session(sys.argv[1], {**SHORT_LIVED, "spark.master": "local[2]"})
    for _ in range(7):  # Spark names by counting: in no other process it has come as far
        own.sql("WITH n AS (SELECT array(1) AS v) SELECT * FROM n").select(F.transform("v", lambda x: x))
    print(json.dumps(fingerprints(own, sys.argv[2])))
