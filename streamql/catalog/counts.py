"""What the consumptions of a stream have done in sum: how many there were, how many rows they took, and which was the last one. Pure.

The ledger has the same as rows, which take a job to read, and which upkeep deletes. The counts are in the entry of the stream. They only
grow, and they are changed by the commit that adds the rows to the ledger. Features count more of a consumption (`Feature.counts`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamql.registered import registered

CONSUMED = "CONSUMED"


ERROR_LENGTH_MAX = 500
"""How much of an error the entry keeps. The ledger has all of it."""


@dataclass(frozen=True)
class Consumption:
    """One consumption of one stream that has ended. Times in milliseconds since 1970. `targets`: the names of its targets, as users write
    them, sorted. `rows_written`: into all of them; None: not known. `error`: None: it has none."""

    started_ms: int
    ended_ms: int
    outcome: str
    targets: tuple[str, ...]
    rows_written: int | None
    error: str | None

    @property
    def is_consumed(self) -> bool:
        """Returns whether the stream advanced."""
        return self.outcome == CONSUMED

    @property
    def why(self) -> str:
        """Returns why it failed, as far as this is known."""
        return self.error or self.outcome


@dataclass(frozen=True)
class Counts:
    """The sums of a stream. Times in milliseconds since 1970, durations in milliseconds.

    `outcomes`: consumptions, by their outcome. `rows`: rows that statements took, by change type. `took_ms`: how long the consumptions took
    together. `last_outcome`, `last_ms`, `last_took_ms`: how the last one ended, when, and how long it took; empty and 0: there was none.
    `failures`: how many have failed in a row. `of_features`: what features count, by names of theirs. `last`: the last one; None: there was
    none, or an earlier release counted it. `last_failure`: the last one that did not advance the stream; None: as for `last`.
    """

    outcomes: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    took_ms: int = 0
    last_outcome: str = ""
    last_ms: int = 0
    last_took_ms: int = 0
    failures: int = 0
    of_features: Mapping[str, int] = field(default_factory=dict)
    last: Consumption | None = None
    last_failure: Consumption | None = None


@dataclass(frozen=True)
class Ended:
    """A consumption of a stream that has ended, as its rows of the ledger have it. `source_type`: the type of the stream's source.
    `details`, `metrics`: the columns of this name, as objects."""

    source_type: str
    consumption: Consumption
    details: Mapping[str, Any]
    metrics: Mapping[str, Any]
    rows: Mapping[str, int]

    @property
    def outcome(self) -> str:
        """Returns how it ended."""
        return self.consumption.outcome

    @property
    def took_ms(self) -> int:
        """Returns how long it took, in milliseconds."""
        return max(0, self.consumption.ended_ms - self.consumption.started_ms)


def ended_by(source_type: str, events: Sequence[Mapping[str, Any]]) -> Ended | None:
    """Returns the consumption of one stream that rows of the ledger are about. None: there are no rows.

    A transaction has a row for each of its statements. The consumption is consumed if one of them is, and only rows of these count.
    """
    if not events:
        return None
    first = events[0]
    consumed = [e for e in events if e["outcome"] == CONSUMED]
    rows: dict[str, int] = {}
    for event in consumed:
        rows = plus(rows, json.loads(event.get("changes") or "{}"))
    written = [int(e["rows_written"]) for e in events if e.get("rows_written") is not None]
    consumption = Consumption(
        int(first["started_at"]),
        int(first["ended_at"]),
        CONSUMED if consumed else str(first["outcome"]),
        tuple(sorted({str(e["target"]).removeprefix("spark_catalog.") for e in events if e.get("target")})),
        sum(written) if written else None,
        max((str(e["error"])[:ERROR_LENGTH_MAX] for e in events if e.get("error")), default=None),
    )
    return Ended(
        source_type,
        consumption,
        json.loads(first.get("details") or "{}"),
        json.loads((consumed or events)[0].get("metrics") or "{}"),
        rows,
    )


def counted(before: Counts, ended: Ended) -> Counts:
    """Returns the counts after one more consumption."""
    of_features = dict(before.of_features)
    for count in registered("counts"):
        of_features |= count(before.of_features, ended)
    return Counts(
        outcomes=plus(before.outcomes, {ended.outcome: 1}),
        rows=plus(before.rows, ended.rows),
        took_ms=before.took_ms + ended.took_ms,
        last_outcome=ended.outcome,
        last_ms=ended.consumption.ended_ms,
        last_took_ms=ended.took_ms,
        failures=0 if ended.outcome == CONSUMED else before.failures + 1,
        of_features=of_features,
        last=ended.consumption,
        last_failure=before.last_failure if ended.outcome == CONSUMED else ended.consumption,
    )


def plus(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Returns the sums of two sets of counts, name by name."""
    return {**before, **{name: before.get(name, 0) + number for name, number in more.items()}}


def counts_json(counts: Counts) -> dict[str, Any]:
    """Returns the JSON form. Counts that are zero are left out. If the last consumption failed, it is `last_failure` too, and is not
    written twice."""
    said = {
        name: vars(value) if isinstance(value, Consumption) else value for name, value in vars(counts).items() if value
    }
    if counts.last == counts.last_failure:
        said.pop("last_failure", None)
    return said


def read_counts(data: object) -> Counts:
    """Returns the counts that `counts_json` wrote. Whatever else is there reads as zeros: a stream must not fail for its counts."""
    if not isinstance(data, Mapping):
        return Counts()
    try:
        last = _consumption(data.get("last"))
        is_failed = last is not None and not last.is_consumed
        return Counts(
            outcomes=_numbers(data.get("outcomes", {})),
            rows=_numbers(data.get("rows", {})),
            took_ms=int(data.get("took_ms", 0)),
            last_outcome=str(data.get("last_outcome", "")),
            last_ms=int(data.get("last_ms", 0)),
            last_took_ms=int(data.get("last_took_ms", 0)),
            failures=int(data.get("failures", 0)),
            of_features=_numbers(data.get("of_features", {})),
            last=last,
            last_failure=last if is_failed else _consumption(data.get("last_failure")),
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        return Counts()


def _numbers(data: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(number) for name, number in data.items()}


def _consumption(data: Mapping[str, Any] | None) -> Consumption | None:
    if not data:
        return None
    written, error = data.get("rows_written"), data.get("error")
    return Consumption(
        int(data["started_ms"]),
        int(data["ended_ms"]),
        str(data["outcome"]),
        tuple(str(target) for target in data["targets"]),
        None if written is None else int(written),
        None if error is None else str(error),
    )
