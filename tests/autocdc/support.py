"""What the targets have, beside what the oracle says that they must have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from pyspark.sql import SparkSession

from tests.autocdc.oracle import Event, State, copy_of, history_of
from tests.consume.support import run

Key = TypeVar("Key", bound=tuple[object, ...])


def assert_copy(
    spark: SparkSession, columns: Sequence[str], events: Mapping[Key, Sequence[Event]], kept: Collection[str] = ()
) -> None:
    """The table `a_copy` is that of the events of each key. `columns`: of the key. `kept`: as the oracle takes it."""
    found = {tuple(r[c] for c in columns): (r["v"], r["w"]) for r in run(spark, "SELECT * FROM a_copy")}
    assert found == {key: row for key, own in events.items() if (row := copy_of(own, kept)) is not None}


def assert_history(
    spark: SparkSession, columns: Sequence[str], events: Mapping[Key, Sequence[Event]], kept: Collection[str] = ()
) -> None:
    """The same of the table `a_history`."""
    found: dict[tuple[object, ...], list[State]] = defaultdict(list)
    for r in run(spark, "SELECT * FROM a_history ORDER BY __START_AT"):
        found[tuple(r[c] for c in columns)].append(State(r["v"], r["w"], r["__START_AT"], r["__END_AT"]))
    assert found.keys() <= events.keys()
    wrong = {key: (own, found[key]) for key, own in events.items() if found[key] != history_of(own, kept)}
    assert not wrong, next(iter(wrong.items()))
