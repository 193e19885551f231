"""What the tests of streams on views share: a schema with two tables, and statements with their results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import streamql
from streamql.catalog.store import catalog_of
from streamql.errors import StreamqlError
from tests.consume.support import TRACKED

_numbers = count(1)

JOINED = "SELECT t.id, t.v, u.w FROM t JOIN u ON t.id = u.id"
FILTERED = "SELECT id, v + 1 AS v1 FROM t WHERE v > 10"


@dataclass
class Place:
    """A schema that is the current one, with the tables t (id, v) and u (id, w)."""

    spark: SparkSession
    schema: str = field(default_factory=lambda: f"on_views_{next(_numbers)}")

    def open(self) -> None:
        """Makes the schema and the tables."""
        self.run(f"CREATE SCHEMA {self.schema}", f"USE {self.schema}")
        self.table("t", "id BIGINT, v BIGINT")
        self.table("u", "id BIGINT, w STRING")

    def close(self) -> None:
        """Takes the schema's streams out of the catalog, whatever became of their views."""
        catalog = catalog_of(self.spark)
        found = [s for s in catalog.all(self.spark) if s.name.schema.startswith(self.schema)]
        assert catalog.commit(self.spark, found, [None] * len(found), [])
        self.run("USE default")

    def table(self, name: str, columns: str, tracked: str = TRACKED) -> None:
        """Makes a table that tracks changes."""
        self.run(f"CREATE TABLE {name} ({columns}) USING DELTA {tracked}")

    def view(self, text: str, name: str = "v", stream: str = "s", clauses: str = "") -> None:
        """Makes a view, and a stream on it."""
        self.run(f"CREATE OR REPLACE VIEW {name} AS {text}", f"CREATE STREAM {stream} ON VIEW {name} {clauses}")

    def run(self, *texts: str) -> list[Row]:
        """Runs statements; the rows of the last one."""
        return [streamql.sql(text, self.spark).collect() for text in texts][-1]

    def value(self, text: str) -> Any:
        """Runs a statement; the only value of its only row."""
        ((found,),) = self.run(text)
        return found

    def bag(self, text: str) -> Counter[tuple[Any, ...]]:
        """The rows of a statement, in no order."""
        return Counter(tuple(row) for row in self.run(text))

    def changes(self, stream: str = "s", columns: str = "*") -> Counter[tuple[Any, ...]]:
        """What a stream shows: the change type and the columns of its view."""
        if columns == "*":
            return Counter((row[0], *row[3:]) for row in self.run(f"SELECT * FROM {stream}"))
        return self.bag(f"SELECT __change_type, {columns} FROM {stream}")

    def refused(self, text: str) -> StreamqlError:
        """Runs a statement that is refused; the error."""
        with pytest.raises(StreamqlError) as found:
            self.run(text)
        return found.value

    def shown(self, stream: str = "s") -> Row:
        """The row of SHOW STREAMS."""
        (row,) = self.run(f"SHOW STREAMS LIKE '{stream}'")
        return row

    def described(self, stream: str = "s") -> dict[str, str]:
        """What DESCRIBE STREAM says."""
        return {row["info_name"]: row["info_value"] for row in self.run(f"DESC STREAM {stream}")}

    def position(self, stream: str = "s") -> dict[str, int]:
        """Where a stream stands, by the last part of the names of its tables."""
        found = json.loads(self.shown(stream)["offset_position"])
        return {name.split(".")[-1]: version for name, version in found.items()}

    def latest(self, table: str) -> int:
        """The newest version of a table."""
        return int(self.run(f"DESCRIBE HISTORY {table} LIMIT 1")[0]["version"])

    def ledger(self, stream: str = "s") -> list[Row]:
        """The consumptions of a stream, the first one first."""
        named = f"stream = '{self.schema}.{stream}'"
        return self.run(f"SELECT * FROM streamql.consumptions WHERE {named} ORDER BY sequence, ended_at")

    def assert_ledger_tiles(self, stream: str = "s") -> None:
        """The intervals that were consumed follow one another, up to where the stream stands."""
        consumed = [r["positions"] for r in self.ledger(stream) if r["outcome"] == "CONSUMED"]
        at = None
        for text in dict.fromkeys(consumed):  # a block has a row for each of its statements
            after, through = json.loads(text)
            assert at in (None, after), consumed
            at = through
        assert at == json.loads(self.shown(stream)["offset_position"]), consumed

    def jobs(self, work: Callable[[], object]) -> int:
        """How many jobs the work starts."""
        context = self.spark.sparkContext
        group = f"views {next(_numbers)}"
        context.setJobGroup(group, group)
        try:
            work()
        finally:
            context._jsc.clearJobGroup()
        return len(context.statusTracker().getJobIdsForGroup(group))
