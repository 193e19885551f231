"""The check of keys, which reads all rows: whether those that streams recognize rows by are unique."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamql.catalog.states import StreamState
from streamql.engine.doctor.check import About, Check, Finding, Problem
from streamql.errors import StreamqlError, counted
from streamql.features.keys.source.keyed import KeyedTable, OpenKeyed, open_keyed
from streamql.names import quote


class UniqueKeys(Check[None]):
    """Finds tables in which several rows have one key. Has no fix, because only the user knows which row is right. A table that several
    streams read is read once for each key."""

    about = About.ROWS
    reads_rows = True

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:
        """See Check."""
        sources = {
            (s.stream.source.path, s.stream.source.key): (str(s.name), s.stream.source)
            for s in states
            if isinstance(s.stream.source, KeyedTable)
        }
        for stream, source in sources.values():
            try:
                finding = _finding(stream, open_keyed(spark, source))
            except StreamqlError:  # the check of sources reports it
                continue
            if finding is not None:
                yield Problem(finding)


def _finding(stream: str, table: OpenKeyed) -> Finding | None:
    key = table.key_at(table.snapshot)
    shown = F.concat_ws(
        ", ", *(F.concat(F.lit(f"{c} = "), F.coalesce(F.col(quote(c)).cast("string"), F.lit("NULL"))) for c in key)
    )
    many = (
        table.table.image(table.snapshot)
        .groupBy(*(F.col(quote(c)) for c in key))
        .agg(F.count("*").alias("__streamql_n"))
    )
    many = many.where("__streamql_n > 1").select(F.col("__streamql_n").alias("n"), shown.alias("key"))
    row = many.agg(F.count("*").alias("keys"), F.max(F.struct("n", "key")).alias("most")).first()
    if row is None or not row["keys"]:
        return None
    rows, example = row["most"]["n"], row["most"]["key"]
    have = "has" if row["keys"] == 1 else "have"
    what = f"{counted(row['keys'], 'key')} of {table.ref.name} {have} several rows, e.g. {rows} rows have ({example})"
    return Finding(
        stream, "error", "KEY_NOT_UNIQUE", what, "correct the table, or ALTER STREAM … SET IDENTITY = ROW_ID"
    )
