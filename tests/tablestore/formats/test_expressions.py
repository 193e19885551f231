"""The texts of SQL expressions; what Spark makes of them is tested with Spark."""

from __future__ import annotations

from streamql.features.tablestore.formats.expressions import sequence_sql
from streamql.features.tablestore.formats.keys import KeyColumn, PrimaryKey
from streamql.features.tablestore.jobs.shards import ShardTree

ID = PrimaryKey((KeyColumn("order id", "integer"),))


def test_ids_of_shards_have_the_numbers_of_generation_and_bucket() -> None:
    tree = ShardTree("t", 1).resharded(1, ID, 1).resharded(9, ID, 12)
    assert tree.generations[1].shard_id(7) == "0001-0007"


def test_sequence_info_counts_microseconds() -> None:
    found = sequence_sql("v", "ms", "r", "s", "c")
    assert found == (
        "concat(__streamql_padded(v, 10), '_', __streamql_padded(ms * 1000L, 20), '_', __streamql_padded(r, 10), '_', s, ':', "
        "__streamql_padded(c, 10))"
    )
