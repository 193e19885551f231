"""Two statements at once that write one target: what one remembers, the other must not lose."""

from __future__ import annotations

import random
from collections import defaultdict
from functools import partial

from pyspark.sql import SparkSession

from tests.autocdc.oracle import Event
from tests.autocdc.support import assert_copy, assert_history
from tests.consume.support import fresh_schema, in_threads, run
from tests.sample import SEED, amount

BATCHES = amount(2, 10)
KEYS = 50
EVENTS = 200
CLAUSES = "KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)"


def test_two_streams_of_the_same_events_into_one_target(spark: SparkSession) -> None:
    rng = random.Random(SEED)
    schema = fresh_schema(spark, "cdc_together")
    ddl = "k INT, v STRING, w STRING, op STRING, seq INT"
    run(spark, f"CREATE TABLE events ({ddl}) TBLPROPERTIES ('change_tracking' = 'true')")
    targets = {"a_copy": "", "a_history": "STORED AS SCD TYPE 2 TRACK HISTORY ON v"}
    run(spark, "CREATE TABLE a_copy (k INT, v STRING, w STRING)")
    run(spark, "CREATE TABLE a_history (k INT, v STRING, w STRING, __START_AT INT, __END_AT INT)")
    for name in (f"{target}_{i}" for target in targets for i in (1, 2)):
        run(spark, f"CREATE STREAM {name} ON TABLE events WITH (TABLE_STREAM_MODE = APPEND_ONLY)")
    events: dict[tuple[int, int], Event] = {}
    for _ in range(BATCHES):
        new = {(rng.randrange(KEYS), rng.randrange(20)): rng.random() for _ in range(EVENTS)}
        made = {
            key: events.get(key) or Event(key[1], chance < 0.3, rng.choice("ab"), rng.choice("xy"))
            for key, chance in new.items()
        }
        events |= made
        rows = [(k, e.v, e.w, "D" if e.deletes else "U", e.seq) for (k, _), e in made.items()]
        spark.createDataFrame(rows, ddl).write.insertInto(f"{schema}.events")

        def apply(target: str, i: int) -> None:
            session = spark.newSession()
            source = f"{schema}.{target}_{i}"
            run(session, f"AUTO CDC INTO {schema}.{target} FROM STREAM {source} {CLAUSES} {targets[target]}")

        for target in targets:
            failures = in_threads(partial(apply, target, 1), partial(apply, target, 2))
            assert not failures, str(failures[0])[:3000]
    of_keys: dict[tuple[int], list[Event]] = defaultdict(list)
    for (k, _), event in events.items():
        of_keys[k,].append(event)
    assert_copy(spark, ["k"], of_keys)
    assert_history(spark, ["k"], of_keys)
