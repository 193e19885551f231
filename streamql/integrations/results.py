"""What an orchestrator learns of streams and of a run: typed, and able to be written as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Backlog:
    """What a statement would consume of a stream. `after`, `through`: the offset and the newest version; JSON texts for a source of several
    parts. `rows_added`, `rows_removed`: upper bounds; None: not known."""

    stream: str
    has_data: bool
    after: int | str | None
    through: int | str | None
    rows_added: int | None = None
    rows_removed: int | None = None

    @property
    def interval(self) -> str:
        """Returns a text that is equal as long as the stream has the same changes."""
        return f"{self.stream}:{self.after}..{self.through}"


@dataclass(frozen=True)
class Consumption:
    """A row of the ledger: what one statement took of one stream. Versions are None if the source has several parts; `positions` has its
    begin and end then. `changes`: rows of the stream by change type; None: not known. Times in milliseconds since 1970."""

    stream: str
    sequence: int
    consumption_id: str
    operation: str | None
    outcome: str
    target: str | None
    target_version: int | None
    from_version: int | None
    through_version: int | None
    positions: list[Any] | None
    changes: Mapping[str, int] | None
    rows_written: int | None
    guarantee: str | None
    started_ms: int
    ended_ms: int
    details: Mapping[str, Any] | None
    error: str | None

    @classmethod
    def of(cls, line: str) -> Consumption:
        """Returns the consumption that a line of `streamql --consumptions` describes. Fields of a newer streamql are left out."""
        found = json.loads(line)
        return cls(**{f.name: found.get(f.name) for f in fields(cls)})

    @property
    def is_consumed(self) -> bool:
        """Returns whether the stream advanced."""
        return self.outcome == "CONSUMED"

    def facts(self) -> dict[str, Any]:
        """Returns it as values of JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Target:
    """A table that a run has written from streams. `rows_written`: by all statements; None: a statement does not say. `changes`: rows of
    all streams by change type. `consumptions`: the rows of the ledger, the oldest first."""

    name: str
    version: int | None
    rows_written: int | None
    changes: Mapping[str, int]
    consumptions: tuple[Consumption, ...]

    def facts(self) -> dict[str, Any]:
        """Returns what an orchestrator keeps with the update of a table, as values of JSON: the rows, and the interval of each stream."""
        streams = [
            {
                "stream": c.stream,
                "from_version": c.from_version,
                "through_version": c.through_version,
                **({} if c.positions is None else {"positions": c.positions}),
                "changes": dict(c.changes or {}),
                "consumption_id": c.consumption_id,
                "target_version": c.target_version,
            }
            for c in self.consumptions
        ]
        return {
            "target": self.name,
            "target_version": self.version,
            "rows_written": self.rows_written,
            "changes": dict(self.changes),
            "streams": streams,
        }


@dataclass(frozen=True)
class Run:
    """A script that ran to its end. `name`: of the run, in the ledger. `consumptions`: of all attempts of the run, the oldest first."""

    name: str
    seconds: float
    consumptions: tuple[Consumption, ...] = field(default_factory=tuple)

    @property
    def targets(self) -> tuple[Target, ...]:
        """Returns the tables that consumptions of the run have written, in the order of their first one. A table into which no row was
        written is left out."""
        return targets_of(self.consumptions)

    def facts(self) -> dict[str, Any]:
        """Returns a summary as values of JSON."""
        return {
            "run": self.name,
            "seconds": round(self.seconds, 3),
            "consumptions": [c.facts() for c in self.consumptions],
        }


def targets_of(consumptions: Iterable[Consumption]) -> tuple[Target, ...]:
    """Returns the tables that the consumptions have written, each once."""
    by_name: dict[str, list[Consumption]] = {}
    for consumption in consumptions:
        if consumption.is_consumed and consumption.target is not None:
            by_name.setdefault(consumption.target, []).append(consumption)
    targets = (_target(name, found) for name, found in by_name.items())
    return tuple(target for target in targets if target.rows_written != 0)


def _target(name: str, found: list[Consumption]) -> Target:
    # The ledger has a row for each stream that a statement reads, so the rows of one statement are counted once.
    written = {(c.consumption_id, c.target_version): c.rows_written for c in found}
    rows = None if None in written.values() else sum(n or 0 for n in written.values())
    changes: dict[str, int] = {}
    for consumption in found:
        for change_type, number in (consumption.changes or {}).items():
            changes[change_type] = changes.get(change_type, 0) + number
    return Target(name, max((c.target_version or 0 for c in found), default=None) or None, rows, changes, tuple(found))
