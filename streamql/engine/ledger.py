"""Reads the ledger for display: the newest consumptions of each stream, and sums of consumptions by time and by target.

The driver receives one row for each stream, each of its buckets of time, or each of its targets. So the size of a result does not grow with
the number of consumptions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.counts import Consumption
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import sentence
from streamql.errors import StreamqlError
from streamql.model import CHANGE_TYPES

log = logging.getLogger("streamql")

T = TypeVar("T")

CHANGES_TYPE = "map<string,bigint>"


@dataclass(frozen=True)
class Newest:
    """The newest consumption of a stream, and the newest one that did not advance it; None: there was none."""

    consumption: Consumption
    failure: Consumption | None


@dataclass(frozen=True)
class Bucket:
    """The sum of the consumptions of a stream that ended in one part of a time window.

    `number`: the part, counted from 0. `lag_versions_max`: the most versions that one consumption took. `changes`: rows by change type.
    `rows_other`: the rows written by consumptions whose change types the ledger does not have.
    """

    number: int
    consumed: int
    failed: int
    lag_versions_max: int
    changes: Mapping[str, int]
    rows_other: int
    error: str | None = None


@dataclass(frozen=True)
class Flow:
    """The sum of all consumptions of a stream into one target. `last_ms`: when the last of them ended."""

    target: str
    consumptions: int
    rows_written: int | None
    last_ms: int


def newest(spark: SparkSession) -> dict[str, Newest]:
    """Returns stream id → its newest consumptions. One job."""
    rows = _consumptions(spark)
    if rows is None:
        return {}
    one = F.struct("started_ms", "ended_ms", "outcome", "targets", "rows_written", "error")
    failed = F.when(F.col("outcome") != "CONSUMED", F.col("ended_ms"))
    found = rows.groupBy("stream_id").agg(
        F.max_by(one, "ended_ms").alias("last"),
        F.max_by(F.when(failed.isNotNull(), one), failed).alias("failure"),
    )
    return {r["stream_id"]: Newest(_consumption(r["last"]), _optional(r["failure"])) for r in found.collect()}


def or_nothing(read: Callable[[], dict[str, T]], what: str) -> dict[str, T]:
    """Returns what `read` reads of the ledger. If the ledger cannot be read, warns and returns an empty result. `what`: the word for what
    is missing then."""
    try:
        return read()
    except StreamqlError:
        raise
    except Exception as e:  # for example a file of it is missing; streams and refreshes do not need the ledger
        log.warning("the ledger cannot be read, so that no %s is shown: %s", what, sentence(e))
        return {}


def first_ms(spark: SparkSession, uuids: Sequence[str]) -> int | None:
    """Returns when the oldest consumption ended that the ledger still has of one of the streams. None: it has none."""
    ledger = catalog_of(spark).ledger(spark)
    found = None if ledger is None else ledger.where(F.col("stream_id").isin(list(uuids)))
    row = None if found is None else found.agg(F.unix_millis(F.min("ended_at"))).first()
    return None if row is None else row[0]


def history(spark: SparkSession, since_ms: int, until_ms: int, parts: int) -> dict[str, tuple[Bucket, ...]]:
    """Returns stream id → its consumptions in a time window, summed by part. `parts`: how many equal parts the window has. Parts without
    consumptions are left out."""
    rows = _consumptions(spark)
    return {} if rows is None else summed(rows, since_ms, until_ms, parts)


def summed(rows: DataFrame, since_ms: int, until_ms: int, parts: int) -> dict[str, tuple[Bucket, ...]]:
    """Returns what `history` returns, for rows of `by_consumption`."""
    span = max(1, until_ms - since_ms)
    part = F.least(F.lit(parts - 1), F.floor((F.col("ended_ms") - since_ms) * parts / span).cast("int"))
    is_consumed = F.col("outcome") == "CONSUMED"
    inside = rows.where(F.col("ended_ms").between(since_ms, until_ms)).withColumn("part", part)
    by_type = [
        F.sum(F.when(is_consumed, F.coalesce(F.try_element_at("changes", F.lit(change_type)), F.lit(0)))).alias(
            change_type
        )
        for change_type in CHANGE_TYPES
    ]
    sums = inside.groupBy("stream_id", "part").agg(
        F.count_if(is_consumed).alias("consumed"),
        F.count_if(~is_consumed).alias("failed"),
        F.coalesce(F.max(F.when(is_consumed, F.col("versions"))), F.lit(0)).alias("lag"),
        F.coalesce(F.sum(F.when(is_consumed & F.col("changes").isNull(), F.col("rows_written"))), F.lit(0)).alias(
            "other"
        ),
        F.max_by("error", F.when(F.col("error").isNotNull(), F.col("ended_ms"))).alias("error"),
        *by_type,
    )
    found: dict[str, list[Bucket]] = {}
    for r in sums.orderBy("stream_id", "part").collect():
        changes = {change_type: int(r[change_type] or 0) for change_type in CHANGE_TYPES}
        bucket = Bucket(r["part"], r["consumed"], r["failed"], r["lag"], changes, int(r["other"]), r["error"])
        found.setdefault(r["stream_id"], []).append(bucket)
    return {stream: tuple(buckets) for stream, buckets in found.items()}


def violations(spark: SparkSession, since_ms: int, until_ms: int) -> dict[str, dict[str, int]]:
    """Returns stream id → the rows that violated each expectation, in consumptions that ended in a time window."""
    ledger = catalog_of(spark).ledger(spark)
    if ledger is None or "details" not in ledger.columns:
        return {}
    counts = F.from_json(F.get_json_object("details", "$.violations"), CHANGES_TYPE)
    inside = ledger.where((F.col("outcome") == "CONSUMED") & F.unix_millis("ended_at").between(since_ms, until_ms))
    # The ledger has a row for each statement of a consumption.
    once = inside.groupBy("stream_id", "consumption_id").agg(F.any_value(counts, True).alias("counts"))
    each = once.select("stream_id", F.explode("counts").alias("name", "rows"))
    sums = each.groupBy("stream_id", "name").agg(F.sum("rows").alias("rows")).orderBy("stream_id", "name")
    found: dict[str, dict[str, int]] = {}
    for r in sums.collect():
        found.setdefault(r["stream_id"], {})[r["name"]] = int(r["rows"])
    return found


def flows(spark: SparkSession) -> dict[str, tuple[Flow, ...]]:
    """Returns stream id → the targets into which it was consumed."""
    ledger = catalog_of(spark).ledger(spark)
    if ledger is None:
        return {}
    rows = ledger.where("outcome = 'CONSUMED' AND target IS NOT NULL")
    summed = rows.groupBy("stream_id", _target().alias("target")).agg(
        F.count_distinct("consumption_id").alias("n"),
        F.sum("rows_written").alias("written"),
        F.unix_millis(F.max("ended_at")).alias("last_ms"),
    )
    found: dict[str, list[Flow]] = {}
    for r in summed.orderBy("stream_id", "target").collect():
        found.setdefault(r["stream_id"], []).append(Flow(r["target"], r["n"], r["written"], r["last_ms"]))
    return {stream: tuple(each) for stream, each in found.items()}


def rows_written_by(spark: SparkSession, host: str, pid: int, since_ms: int) -> int | None:
    """Returns how many rows the consumptions wrote that belong to a process and have ended since a time. None: there are none, or they do
    not have the number."""
    ledger = catalog_of(spark).ledger(spark)
    if ledger is None:
        return None
    mine = ledger.where(
        (F.col("host") == host)
        & (F.col("pid") == pid)
        & (F.unix_millis("ended_at") >= since_ms)
        & (F.col("outcome") == "CONSUMED")
    )
    # The ledger has a row for each stream that a statement reads, so the rows of one statement are counted once.
    row = (
        mine.groupBy("consumption_id", "target_path", "target_version")
        .agg(F.max("rows_written").alias("n"))
        .agg(F.sum("n"))
        .first()
    )
    return None if row is None else row[0]


def _consumptions(spark: SparkSession) -> DataFrame | None:
    """Returns the ledger with one row for each stream and consumption. None: there is no catalog yet."""
    ledger = catalog_of(spark).ledger(spark)
    return None if ledger is None else by_consumption(ledger)


def by_consumption(ledger: DataFrame) -> DataFrame:
    """Returns the ledger with one row for each stream and consumption; the ledger itself has one for each statement. If a consumption has
    several statements, `changes` is that of the statement that took the most rows."""
    counted = F.from_json("changes", CHANGES_TYPE)
    rows = F.aggregate(F.map_values(counted), F.lit(0).cast("bigint"), lambda total, n: total + n)
    changes = F.max_by(counted, rows)
    outcome = F.when(F.bool_or(F.col("outcome") == "CONSUMED"), F.lit("CONSUMED"))
    # Rows that lack one of these were edited by hand.
    usable = ledger.dropna(subset=["stream_id", "consumption_id", "started_at", "ended_at", "outcome"])
    return usable.groupBy("stream_id", "consumption_id").agg(
        F.unix_millis(F.min("started_at")).alias("started_ms"),
        F.unix_millis(F.max("ended_at")).alias("ended_ms"),
        F.coalesce(outcome, F.max_by("outcome", "ended_at")).alias("outcome"),
        F.array_sort(F.collect_set(_target())).alias("targets"),
        F.sum("rows_written").alias("rows_written"),
        F.max("error").alias("error"),
        F.coalesce(F.max("through_version") - F.min("from_version"), _offsets(ledger)).alias("versions"),
        changes.alias("changes"),
    )


def _offsets(ledger: DataFrame) -> Column:
    """Returns the column that counts how many offsets a consumption took of a source of several parts. A part without a recorded begin
    counts from 0."""
    if "positions" not in ledger.columns:  # the catalog of an earlier streamql
        return F.lit(None).cast("bigint")
    ends = F.from_json("positions", "ARRAY<MAP<STRING, BIGINT>>")
    zero = F.lit(0).cast("bigint")
    begin, through = F.get(ends, F.lit(0)), F.map_entries(F.get(ends, F.lit(1)))
    taken = F.aggregate(
        through, zero, lambda n, part: n + part["value"] - F.coalesce(F.try_element_at(begin, part["key"]), zero)
    )
    return F.max(taken)


def _target() -> Column:
    """Returns a target's name as users write it."""
    return F.regexp_replace("target", r"^spark_catalog\.", "")


def _consumption(r: Row) -> Consumption:
    return Consumption(r["started_ms"], r["ended_ms"], r["outcome"], tuple(r["targets"]), r["rows_written"], r["error"])


def _optional(r: Row | None) -> Consumption | None:
    return None if r is None else _consumption(r)
