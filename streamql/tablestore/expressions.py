"""Sequence info as an SQL expression, which Spark evaluates for each record. Pure: a text is made, nothing is run."""

from __future__ import annotations

from streamql.tablestore.sequence import FORMAT


def sequence_sql(version: str, time_ms: str, row: str, shard: str, column: str) -> str:
    """Returns the SQL expression for `sequence.SequenceInfo` as text. All arguments are SQL expressions: the version of the commit, its
    time in milliseconds since 1970, the numbers of the record and of the tuple in it as BIGINT, and the id of the shard."""
    return f"format_string('{FORMAT}', {version}, {time_ms} * 1000L, {row}, {shard}, {column})"
