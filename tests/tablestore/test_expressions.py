"""The texts of SQL expressions; what Spark makes of them is tested with Spark."""

from __future__ import annotations

import pytest

from streamql.tablestore.expressions import sequence_sql, shard_sql
from streamql.tablestore.keys import KeyColumn, PrimaryKey
from streamql.tablestore.shards import ShardTree

ID = PrimaryKey((KeyColumn("order id", "integer"),))


def test_the_newest_generation_that_has_begun_has_a_record() -> None:
    tree = ShardTree("t", 1).resharded(1, ID, 1).resharded(9, ID, 12)
    bucket = "pmod(xxhash64(try_cast(`order id` AS BIGINT)), {}L)"
    assert shard_sql(tree, "v") == (
        f"CASE WHEN v >= 9 THEN concat('0001-', lpad(CAST({bucket.format(12)} AS STRING), 4, '0')) "
        f"WHEN v >= 1 THEN concat('0000-', lpad(CAST({bucket.format(1)} AS STRING), 4, '0')) END"
    )
    assert tree.generations[1].shard_id(7) == "0001-0007"
    with pytest.raises(ValueError, match="no shards"):
        shard_sql(ShardTree("t", 1), "v")


def test_sequence_info_counts_microseconds() -> None:
    found = sequence_sql("v", "ms", "r", "s", "c")
    assert found == "format_string('%010d_%020d_%010d_%s:%010d', v, ms * 1000L, r, s, c)"
