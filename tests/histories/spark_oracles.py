"""The oracles that run on Spark: for larger tables, and to keep the ones in Python honest."""

from __future__ import annotations

from collections import Counter
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .columns import canonical
from .oracles import Bag, Change
from .recording import TableLog, quoted, read_log, sql_name

CHANGELOG = (("spark.databricks.delta.changelogV2.enabled", "true"),)

TYPES_OF_CHANGELOG = {
    "insert": "INSERT",
    "delete": "DELETE",
    "update_preimage": "UPDATE_BEFORE",
    "update_postimage": "UPDATE_AFTER",
}


def snapshot(spark: SparkSession, log: TableLog, version: int, through: int) -> DataFrame:
    """A version with __row_id and __version, in the columns of `through` by physical name, NULL where not there yet."""
    then = {c.physical: c.name for c in log.columns[version]}
    types = spark.sql(f"SELECT * FROM {sql_name(log.path)} VERSION AS OF {through}").schema
    exprs = []
    for column in log.columns[through]:
        source = quoted(then[column.physical]) if column.physical in then else "NULL"
        exprs.append(f"CAST({source} AS {types[column.name].dataType.simpleString()}) AS {quoted(column.name)}")
    ids = "_metadata.row_id AS __row_id, _metadata.row_commit_version AS __version"
    return spark.sql(f"SELECT {ids}, {', '.join(exprs)} FROM {sql_name(log.path)} VERSION AS OF {version}")


def commit_times(spark: SparkSession, log: TableLog) -> DataFrame:
    """(version, time) of every commit."""
    rows = [(version, time) for version, time in enumerate(log.times)]
    return spark.createDataFrame(rows, "__v BIGINT, __commit_timestamp TIMESTAMP")


def snapshot_join(spark: SparkSession, path: str, after: int, through: int) -> DataFrame:
    """STANDARD by a full join of two snapshots on row id."""
    log = read_log(path)
    names = [c.name for c in log.columns[through]]
    old = snapshot(spark, log, after, through)
    new = snapshot(spark, log, through, through)
    same = " AND ".join(_same(c.name, c.type) for c in log.columns[through]) or "true"
    pairs = old.alias("o").join(new.alias("n"), on=old["__row_id"] == new["__row_id"], how="full_outer")
    pairs = pairs.where(f"o.__row_id IS NULL OR n.__row_id IS NULL OR NOT ({same})")
    sides = []
    for side, other, alone, paired in (("o", "n", "DELETE", "UPDATE_BEFORE"), ("n", "o", "INSERT", "UPDATE_AFTER")):
        change_type = f"IF({other}.__row_id IS NULL, '{alone}', '{paired}') AS __change_type"
        columns = [f"{side}.{quoted(name)}" for name in names]
        here = pairs.where(f"{side}.__row_id IS NOT NULL")
        sides.append(here.selectExpr(change_type, f"{side}.__version AS __commit_version", *columns))
    rows = sides[0].unionByName(sides[1])
    times = commit_times(spark, log)
    timed = rows.join(times, rows["__commit_version"] == times["__v"], "left")
    return timed.select("__change_type", "__commit_version", "__commit_timestamp", *[quoted(n) for n in names])


def _same(name: str, log_type: object) -> str:
    column = quoted(name)
    if log_type == "variant":
        return f"to_json(o.{column}) <=> to_json(n.{column})"
    if isinstance(log_type, dict) and log_type.get("type") == "map":
        entries = "array_sort(map_entries({}.{}))"
        return f"{entries.format('o', column)} <=> {entries.format('n', column)}"
    if log_type == "string":
        return f"CAST(o.{column} AS BINARY) <=> CAST(n.{column} AS BINARY)"
    return f"o.{column} <=> n.{column}"


def snapshot_appends(spark: SparkSession, path: str, after: int, through: int) -> DataFrame:
    """APPEND_ONLY: the rows of each version of the window whose ids no earlier version has."""
    log = read_log(path)
    names = [quoted(c.name) for c in log.columns[through]]
    images = [snapshot(spark, log, v, through).withColumn("__at", F.lit(v)) for v in range(through + 1)]
    ids = reduce(DataFrame.union, [image.select("__row_id", "__at") for image in images])
    first = ids.groupBy("__row_id").agg(F.min("__at").alias("__at"))
    appended = reduce(DataFrame.unionByName, images[after + 1 :]).join(first, ["__row_id", "__at"])
    times = commit_times(spark, log)
    timed = appended.join(times, appended["__version"] == times["__v"])
    return timed.selectExpr("'INSERT' AS __change_type", "__version AS __commit_version", "__commit_timestamp", *names)


def changelog(spark: SparkSession, log: TableLog, after: int, through: int) -> Bag | None:
    """Spark's own net changes, by name, without its pairs of equal images. None where it cannot read the window.

    Its commit version is that of the last change rather than of the image shown: callers compare types and values.
    """
    columns = log.columns
    if any(columns[v] != columns[through] or c.physical != c.name for v in range(after, through) for c in columns[v]):
        return None  # column mapping fails in it, and schema changes are not its business
    options = "deduplicationMode = 'netChanges', computeUpdates = 'true'"
    names = ", ".join(quoted(c.name) for c in columns[through])
    own = spark.newSession()  # several threads ask at once: what one sets, another would take back
    for key, value in CHANGELOG:
        own.conf.set(key, value)
    changes = f"{sql_name(log.path)} CHANGES FROM VERSION {after + 1} TO VERSION {through}"
    try:
        rows = own.sql(f"SELECT _change_type, {names} FROM {changes} WITH ({options})").collect()
    except Exception as error:
        if "CHANGELOG_CONTRACT_VIOLATION" in str(error):
            return None  # Delta 4.4.0 on files with several row groups
        raise
    bag: Bag = Counter()
    for row in rows:
        bag[Change(TYPES_OF_CHANGELOG[row[0]], 0, None, tuple(canonical(v) for v in row[1:]))] += 1
    return bag


def differing(expected: DataFrame, actual: DataFrame) -> tuple[list[object], list[object]]:
    """Up to 5 rows of each that the other lacks, compared as multisets inside Spark: by a sum of hashes, then, if that differs, by rows."""
    hashes = "count(*)", "sum(CAST(xxhash64(*) AS DECIMAL(38)))"
    if expected.selectExpr(*hashes).first() == actual.selectExpr(*hashes).first():
        return [], []
    missing = expected.exceptAll(actual).limit(5).collect()
    extra = actual.exceptAll(expected).limit(5).collect()
    return list(missing), list(extra)
