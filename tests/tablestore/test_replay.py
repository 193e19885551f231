"""A dictionary store that applies the tuples of random histories equals the table, whatever the slices and the order of shards.

STREAMQL_LONG=50 pytest tests/tablestore/test_replay.py    # that many histories
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from streamql.features.tablestore.jobs.windows import TIME_MAX_MS
from streamql.features.tablestore.records.streams import open_stream
from tests.sample import SEED, amount
from tests.tablestore.shop import Shop, Tuple

Store = dict[int, dict[str, str]]

STEPS = 14


def operations(rng: random.Random) -> Iterator[str]:
    """Statements on the table, whose keys stay unique."""
    fresh = 1000
    added = 0
    version_of_restore = 3
    for _ in range(STEPS):
        lo = rng.randrange(60)
        where = rng.choice([f"id BETWEEN {lo} AND {lo + 15}", f"id % 5 = {lo % 5}", f"id = {lo}"])
        fresh += 1000
        yield rng.choice(
            [
                (
                    f"INSERT INTO {{s}}.orders (id, city, amount) SELECT CAST({fresh} + id AS INT), nullif(concat('n', id), 'n3'), id "
                    "FROM range(9)"
                ),
                f"UPDATE {{s}}.orders SET city = concat(city, '{lo}'), amount = amount WHERE {where}",
                f"UPDATE {{s}}.orders SET amount = IF(id % 2 = 0, NULL, {lo}) WHERE {where}",
                f"UPDATE {{s}}.orders SET id = id + {fresh} WHERE {where}",
                f"DELETE FROM {{s}}.orders WHERE {where}",
                (
                    "MERGE INTO {s}.orders t USING (SELECT CAST(id AS INT) AS id FROM range(0, 60, 4)) s ON t.id = s.id "
                    f"WHEN MATCHED AND s.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET city = 'm{lo}' "
                    "WHEN NOT MATCHED THEN INSERT (id, city) VALUES (s.id, 'new')"
                ),
                f"INSERT OVERWRITE {{s}}.orders (id, city, amount) SELECT CAST(id AS INT), 'o', {lo} FROM range({lo})",
                f"RESTORE TABLE {{s}}.orders TO VERSION AS OF {version_of_restore}",
                "OPTIMIZE {s}.orders",
                f"ALTER TABLE {{s}}.orders SET TBLPROPERTIES ('tablestore.shard_count' = '{rng.randint(1, 6)}')",
                f"ALTER TABLE {{s}}.orders ADD COLUMN added_{(added := added + 1)} INT",
            ]
        )


def applied(store: Store, tuples: list[Tuple]) -> None:
    """Applies tuples as DataX defines them."""
    for t in tuples:
        op, key = t["opType"], t["id"]
        if op == "DR":
            store.pop(key, None)
        elif op == "U":
            store.setdefault(key, {})[t["columnName"]] = t["columnValue"]
        else:
            store.get(key, {}).pop(t["columnName"], None)


def shuffled(rng: random.Random, tuples: list[Tuple]) -> list[Tuple]:
    """The tuples by shard, the shards of a generation in any order."""
    shards: dict[str, list[Tuple]] = {}
    for t in tuples:
        shards.setdefault(t["sequenceInfo"].split("_")[3].split(":")[0], []).append(t)
    order = sorted(shards, key=lambda shard: (shard.split("-")[0], rng.random()))
    return [t for shard in order for t in shards[shard]]


def expected(shop: Shop) -> Store:
    """The table, but for rows whose non-key columns are all NULL, which the format cannot express."""
    rows = shop.spark.table(f"{shop.schema}.orders").collect()
    found = {r["id"]: {k: str(v) for k, v in r.asDict().items() if k != "id" and v is not None} for r in rows}
    assert len(found) == len(rows)
    return {key: values for key, values in found.items() if values}


@pytest.mark.parametrize("number", range(amount(2, 10)))
def test_a_replay_equals_the_table(shop: Shop, number: int) -> None:
    rng = random.Random(f"{SEED} {number}")
    shop.orders(shards=rng.randint(1, 4))
    if rng.random() < 0.6:
        shop.run("ALTER TABLE {s}.orders SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    shop.run(
        "INSERT INTO {s}.orders SELECT CAST(id AS INT), concat('c', id), id FROM range(60)",
        "DELETE FROM {s}.orders WHERE id = 7",
    )
    done = list(operations(rng))
    shop.run(*done)
    stream = open_stream(shop.spark, f"{shop.schema}.orders")
    times = [c.time_ms for c in stream.commits(0, stream.latest.version)]
    cuts = sorted(rng.sample(times, rng.randint(0, 3)))
    store: Store = {}
    seen: list[Any] = []
    for start, end in zip([0, *cuts], [*cuts, TIME_MAX_MS], strict=True):
        shop.job(start, end, isExportSequenceInfo=True)
        tuples = shop.lines(start, end)
        seen += [t["sequenceInfo"] for t in tuples]
        applied(store, shuffled(rng, tuples))
    assert len(set(seen)) == len(seen), "a record twice"
    assert {k: v for k, v in store.items() if v} == expected(shop), "\n".join(done)
    whole: Store = {}
    shop.job(1, isExportSequenceInfo=True)
    applied(whole, shuffled(rng, shop.lines(1)))
    assert whole == store
