"""Shards and sequence info as SQL expressions, which Spark evaluates for each record. Pure: texts are made, nothing is run."""

from __future__ import annotations

from streamql.tablestore.keys import bucket_sql
from streamql.tablestore.sequence import FORMAT
from streamql.tablestore.shards import ShardTree


def shard_sql(tree: ShardTree, version: str) -> str:
    """Returns the SQL expression for the id of a record's shard, a STRING. NULL: the stream began later.

    `version`: an SQL expression for the version of the record's commit. The expression reads the columns of the key by their names, so a
    record has those of all generations that it may be in. Raises ValueError if the tree has no generations.
    """
    if not tree.generations:
        raise ValueError(f"stream {tree.stream_id} has no shards")
    arms = []
    for generation in reversed(tree.generations):
        bucket = bucket_sql(generation.key, generation.hashed_types, generation.count)
        shard = f"concat('{generation.number:04d}-', lpad(CAST({bucket} AS STRING), 4, '0'))"
        arms.append(f"WHEN {version} >= {generation.first} THEN {shard}")
    return f"CASE {' '.join(arms)} END"


def sequence_sql(version: str, time_ms: str, row: str, shard: str, column: str) -> str:
    """Returns the SQL expression for `sequence.SequenceInfo` as text. All arguments are SQL expressions: the version of the commit, its
    time in milliseconds since 1970, the numbers of the record and of the tuple in it as BIGINT, and the id of the shard."""
    return f"format_string('{FORMAT}', {version}, {time_ms} * 1000L, {row}, {shard}, {column})"
