"""The ledger for display: the newest consumptions of each stream, and all of them summed by time and by target.

However many consumptions there are, what leaves Spark is bounded: a row a stream, a stream's bucket of time, or a stream's target.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamql.catalog.store import catalog_of
from streamql.delta.jvm import sentence
from streamql.errors import StreamqlError
from streamql.model import CHANGE_TYPES

log = logging.getLogger("streamql")

T = TypeVar("T")

CHANGES_TYPE = "map<string,bigint>"


@dataclass(frozen=True)
class Consumption:
    """One resolved consumption of one stream. Times in milliseconds since 1970; `rows_written`: into all its targets, None: not known."""

    started_ms: int
    ended_ms: int
    outcome: str
    targets: tuple[str, ...]
    rows_written: int | None
    error: str | None

    @property
    def is_consumed(self) -> bool:
        """Returns whether the stream moved."""
        return self.outcome == "CONSUMED"

    @property
    def why(self) -> str:
        """Returns why it failed, as far as the ledger has it."""
        return self.error or self.outcome


@dataclass(frozen=True)
class Newest:
    """Of a stream: its newest consumption, and the newest that did not end; None: there was none."""

    consumption: Consumption
    failure: Consumption | None


@dataclass(frozen=True)
class Bucket:
    """The consumptions of a stream that ended in one part of a time window, summed.

    `number`: the part, counted from 0. `lag_versions_max`: the most versions that one took. `changes`: rows by change type.
    `rows_other`: rows written by consumptions of which the ledger does not know the change types.
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
    """What went from a stream into a target, all in all."""

    target: str
    consumptions: int
    rows_written: int | None
    last_ms: int


def newest(spark: SparkSession) -> dict[str, Newest]:
    """Stream id → what the ledger has of it last. One job."""
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
    """Returns what is read of the ledger; nothing if it cannot be read, which a warning says. `what`: is not shown then."""
    try:
        return read()
    except StreamqlError:
        raise
    except Exception as e:  # a file of it is gone: neither streams nor refreshes need it
        log.warning("the ledger cannot be read, so that no %s is shown: %s", what, sentence(e))
        return {}


def first_ms(spark: SparkSession, uuids: Sequence[str]) -> int | None:
    """Returns when the first consumption of one of the streams ended that the ledger still has. None: it has none."""
    ledger = catalog_of(spark).ledger(spark)
    found = None if ledger is None else ledger.where(F.col("stream_id").isin(list(uuids)))
    row = None if found is None else found.agg(F.unix_millis(F.min("ended_at"))).first()
    return None if row is None else row[0]


def history(spark: SparkSession, since_ms: int, until_ms: int, parts: int) -> dict[str, tuple[Bucket, ...]]:
    """Stream id → its consumptions in a time window that is cut into so many parts of one length; parts without any are left out."""
    rows = _consumptions(spark)
    return {} if rows is None else summed(rows, since_ms, until_ms, parts)


def summed(rows: DataFrame, since_ms: int, until_ms: int, parts: int) -> dict[str, tuple[Bucket, ...]]:
    """`history` of rows as `by_consumption` gives them."""
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


def flows(spark: SparkSession) -> dict[str, tuple[Flow, ...]]:
    """Stream id → the targets that it was consumed into."""
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
    """Returns the rows of the consumptions that a process has ended since a time, begun by whomever: None if there was none that says
    so."""
    ledger = catalog_of(spark).ledger(spark)
    if ledger is None:
        return None
    mine = ledger.where(
        (F.col("host") == host)
        & (F.col("pid") == pid)
        & (F.unix_millis("ended_at") >= since_ms)
        & (F.col("outcome") == "CONSUMED")
    )
    # One statement that reads two streams has a row for each of them.
    row = (
        mine.groupBy("consumption_id", "target_path", "target_version")
        .agg(F.max("rows_written").alias("n"))
        .agg(F.sum("n"))
        .first()
    )
    return None if row is None else row[0]


def _consumptions(spark: SparkSession) -> DataFrame | None:
    """Returns a row a stream and consumption: the ledger has one for each statement of it."""
    ledger = catalog_of(spark).ledger(spark)
    return None if ledger is None else by_consumption(ledger)


def by_consumption(ledger: DataFrame) -> DataFrame:
    """Returns the ledger's rows, one a stream and consumption. Of several statements, the one that took the most rows stands for what was
    there."""
    counted = F.from_json("changes", CHANGES_TYPE)
    rows = F.aggregate(F.map_values(counted), F.lit(0).cast("bigint"), lambda total, n: total + n)
    changes = F.max_by(counted, rows)
    outcome = F.when(F.bool_or(F.col("outcome") == "CONSUMED"), F.lit("CONSUMED"))
    whole = ledger.dropna(
        subset=["stream_id", "consumption_id", "started_at", "ended_at", "outcome"]
    )  # it may be edited by hand
    return whole.groupBy("stream_id", "consumption_id").agg(
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
    """Returns how many offsets of a source of several parts a consumption took. A part whose begin is not recorded counts from 0."""
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
