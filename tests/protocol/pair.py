"""A source of two parts: two tables whose changes come by one stream. A toy: it shows what a type of sources has to bring along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.table import DeltaTable
from streamql.feature import Feature
from streamql.model import Interval, Offset, Parts, Position, StreamMode, TableSource, Versions
from streamql.names import Name
from streamql.sources.protocol import HIDDEN_TYPE, Backlog, Expiry, Point, SourceType
from tests.protocol.statements import ChangeSet

PREFIXES = {"pair": "pair_", HIDDEN_TYPE: "refreshed_"}
"""How the name of a pair begins, by its type: the pair of a hidden stream is one that only refreshes consume."""
PARTS = ("left", "right")


@dataclass(frozen=True)
class PairSource:
    """Two tables, by the name that is made of theirs."""

    name: Name
    type_name: str = "pair"

    @property
    def identity(self) -> str:
        """Its name: it cannot be renamed."""
        return str(self.name)

    @property
    def path(self) -> str:
        """Where both tables are."""
        return "+".join(f"/data/{self.name.object.removeprefix(PREFIXES[self.type_name])}_{part}" for part in PARTS)

    def to_json(self) -> dict[str, Any]:
        """What `read` takes."""
        return {"name": list(self.name.parts)}

    def holds(self, interval: Interval) -> list[tuple[TableSource, Versions]]:
        """Nothing: no scenario vacuums."""
        return []


@dataclass(frozen=True)
class OpenPair:
    """The pair as it is now."""

    spark: SparkSession
    ref: PairSource
    latest: Parts

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:
        """A stream can be made on it."""

    def check_start(self, offset: Offset) -> None:
        """It keeps all of its history."""

    def check_history(self, offset: Offset, seen: object, stream: Name) -> None:
        """It never goes back."""

    def offset_at(self, point: Point) -> Offset:
        """No scenario names a point."""
        raise NotImplementedError

    def one_earlier(self, position: Position, point: Point) -> Position:
        """No scenario names a point."""
        raise NotImplementedError

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """The change set."""
        return ChangeSet(self.ref.path, interval)  # type: ignore[return-value]  # stands for the frame

    def as_at(self, position: Position, frame: DataFrame, end: Position) -> DataFrame:
        """Its columns never change."""
        return frame

    def seen_at(self, position: Position) -> PairSource:
        """The same."""
        return self.ref

    def time_ms(self, position: Position) -> int | None:
        """It has no times."""
        return None

    def lag(self, offset: Offset) -> int:
        """How many versions, of both tables."""
        assert isinstance(offset.position, Parts)
        return sum(dict(self.latest.numbers).values()) - sum(dict(offset.position.numbers).values())

    def first_step(self, interval: Interval) -> Interval:
        """All of it."""
        return interval

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> Position:
        """All of it."""
        return interval.through

    def backlog(self, interval: Interval, mode: StreamMode) -> Backlog:
        """Something, if anything."""
        return Backlog(1, None, None, 0, 0, not interval.is_empty)

    def expiry(self, interval: Interval, mode: StreamMode) -> Expiry | None:
        """Never."""
        return None

    def describe_move(self, stream: Name, mode: StreamMode, old: Offset, new: Offset) -> str | None:
        """Where to."""
        return f"stream {stream} was set to {new.position}"


def open_pair(spark: SparkSession, source: PairSource) -> OpenPair:
    """Looks at both tables."""
    versions = [DeltaTable(spark, path).latest().version for path in source.path.split("+")]
    return OpenPair(spark, source, Parts.of(dict(zip(PARTS, versions, strict=True))))


def pair_type(type_name: str) -> SourceType:
    """Pairs whose type has the name."""

    def read(data: Mapping[str, Any]) -> PairSource:
        return PairSource(Name.of(data["name"]), type_name)

    def find(_: SparkSession, name: Name) -> PairSource | None:
        return PairSource(name, type_name) if name.object.startswith(PREFIXES[type_name]) else None

    return SourceType(name=type_name, label="PAIR", read=read, open=open_pair, find=find)


FEATURE = Feature("pairs", source_types=lambda: [pair_type(type_name) for type_name in PREFIXES])
