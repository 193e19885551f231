"""The place of a record in its stream, as data and as text.

Source of the text: DataX, otsstreamreader: `%010d_%020d_%010d_%s:%010d` of epoch, microseconds, row index, shard and column index. The
epoch is the version of the commit, so texts sort in the order of commits even if a writer's clock was set back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamql.errors import StreamqlError

FORMAT = "%010d_%020d_%010d_%s:%010d"
"""Python's; `expressions.sequence_sql` makes an SQL expression of it."""

NUMBER_MAX = 10**10 - 1
"""The largest version, row index and column index of which texts still sort as numbers do."""

_TEXT = re.compile(r"(\d{10})_(\d{20})_(\d{10})_([^:]+):(\d{10})\Z", re.ASCII)


@dataclass(frozen=True, order=True)
class Position:
    """A record's place in a shard: the version of its commit, and its number among the records of that commit and shard, from 0."""

    version: int
    row: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.version <= NUMBER_MAX and 0 <= self.row <= NUMBER_MAX):
            raise ValueError(f"not a position: {self.version}, {self.row}")

    @property
    def next_row(self) -> Position:
        """Returns the place behind this one in the same commit."""
        return Position(self.version, self.row + 1)


@dataclass(frozen=True, order=True)
class SequenceInfo:
    """The place of a 6-tuple. `time_us`: when the commit was made, in microseconds since 1970. `column`: the number of the tuple in its
    record, from 0."""

    position: Position
    time_us: int
    shard: str
    column: int

    def __post_init__(self) -> None:
        is_sortable = 0 <= self.time_us < 10**20 and 0 <= self.column <= NUMBER_MAX
        if not is_sortable or not self.shard or ":" in self.shard:
            raise ValueError(f"not sequence info: {self.time_us}, {self.shard!r}, {self.column}")

    def __str__(self) -> str:
        return FORMAT % (self.position.version, self.time_us, self.position.row, self.shard, self.column)


def parse_sequence(text: str) -> SequenceInfo:
    """Returns the sequence info of a text. Raises INVALID_ARGUMENT if it is not sequence info."""
    found = _TEXT.match(text)
    if found is None:
        raise StreamqlError(
            "INVALID_ARGUMENT",
            f"{text[:80]!r} is not sequence info",
            hint="sequence info is version_microseconds_row_shard:column, with leading zeros",
        )
    version, time_us, row, column = (int(found.group(i)) for i in (1, 2, 3, 5))
    return SequenceInfo(Position(version, row), time_us, found.group(4), column)
