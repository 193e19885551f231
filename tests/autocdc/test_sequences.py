"""With SEQUENCE BY, the target is a function of the set of events: whatever their order, their batches, and how often each comes.

STREAMQL_LONG=20 make test TESTS=tests/autocdc    # that many times as many keys
"""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest
from pyspark.sql import SparkSession

from tests.autocdc.oracle import Event
from tests.autocdc.support import assert_copy, assert_history
from tests.consume.support import fresh_schema, run
from tests.sample import SEED, amount

KEYS = 1000 * amount(1, 10)
"""Each key has a set of events of its own, in an order of its own."""
BATCHES = amount(3, 5)
Key = tuple[int | None, str | None]

COMMON = "KEYS (k, part) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq, arrived)"
IGNORED = {"": (), "IGNORE NULL UPDATES": ("v", "w"), "IGNORE NULL UPDATES ON (v)": ("v",)}
"""The clause, and the columns whose NULLs it ignores."""


def events_of(rng: random.Random, kept: Collection[str]) -> list[Event]:
    """Some events, many of them with one sequence and many that change nothing."""
    found: dict[tuple[int, bool], Event] = {}
    for _ in range(rng.randint(1, 9)):
        seq, deletes = rng.randint(1, 12), rng.random() < 0.3
        found[seq, deletes] = Event(seq, deletes, rng.choice(("a", "a", "b", None)), rng.choice(("x", "y", None)))
    parts = [e._replace(**{name: None}) for e in found.values() for name in kept if rng.random() < 0.3]
    return [*found.values(), *parts]


def rows_of(rng: random.Random, key: Key, events: list[Event]) -> list[tuple[object, ...]]:
    """Each event once or twice, in some batch."""
    arrived = [e for e in events for _ in range(rng.choice((1, 1, 2)))]
    return [(*key, e.v, e.w, "D" if e.deletes else "U", e.seq, rng.randrange(BATCHES)) for e in arrived]


@pytest.mark.parametrize("ignored", IGNORED)
def test_the_result_is_that_of_the_set_of_events(spark: SparkSession, ignored: str) -> None:
    rng, kept = random.Random(SEED), IGNORED[ignored]
    fresh_schema(spark, "sequences")
    keys: list[Key] = [(n if n % 7 else None, rng.choice(("p", None)) if n % 7 else str(n)) for n in range(KEYS)]
    events = {key: events_of(rng, kept) for key in keys}
    truncated = [rng.randint(1, 7) for _ in range(2)]
    rows = [row for key, own in events.items() for row in rows_of(rng, key, own)]
    rows += [(None, None, None, None, "T", seq, rng.randrange(BATCHES)) for seq in truncated]
    ddl = "k INT, part STRING, v STRING, w STRING, op STRING, seq INT, arrived INT"
    spark.createDataFrame(rows, ddl).write.saveAsTable("every")
    run(spark, f"CREATE TABLE events ({ddl}) TBLPROPERTIES ('change_tracking' = 'true')")
    for stream in ("of_copy", "of_history"):
        run(spark, f"CREATE STREAM {stream} ON TABLE events WITH (TABLE_STREAM_MODE = APPEND_ONLY)")
    common = f"{ignored} {COMMON} WITH (CREATE_TARGET = TRUE)"
    changes = "(SELECT * FROM of_history WHERE op <> 'T')"
    for batch in range(BATCHES):
        run(spark, f"INSERT INTO events SELECT * FROM every WHERE arrived = {batch}")
        run(spark, f"AUTO CDC INTO a_copy FROM STREAM of_copy APPLY AS TRUNCATE WHEN op = 'T' {common}")
        run(spark, f"AUTO CDC INTO a_history FROM {changes} {common} STORED AS SCD TYPE 2 TRACK HISTORY ON v")
    gone = [Event(seq, True, None, None) for seq in truncated]
    assert_copy(spark, ["k", "part"], {key: [*own, *gone] for key, own in events.items()}, kept)
    assert_history(spark, ["k", "part"], events, kept)
    assert not any(run(spark, f"SELECT * FROM {s}") for s in ("of_copy", "of_history"))
