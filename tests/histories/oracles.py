"""What a change set must be, computed in plain Python from whole snapshots and from the plain-Python table."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol

from streamql.model import StreamMode

from .model import ModelChange, model_appends, model_changes
from .recording import Image, LogColumn, Recording, TableLog

ADDS = ("INSERT", "UPDATE_AFTER")


@dataclass(frozen=True, order=False)
class Change:
    """A row of a change set, in canonical values and in the order of the columns at `through`."""

    change_type: str
    commit_version: int
    commit_time: dt.datetime | None
    values: tuple[Hashable, ...]

    def __str__(self) -> str:
        return f"{self.change_type:13} v{self.commit_version} {self.commit_time} {self.values!r}"


Bag = Counter[Change]


class Versions(Protocol):
    """Snapshots by version number."""

    def __getitem__(self, version: int, /) -> dict[int, Image]: ...


class Readable(Protocol):
    """A table with its log and its snapshots: a Recording, or a table that reads them when asked."""

    @property
    def log(self) -> TableLog: ...

    @property
    def snapshots(self) -> Versions: ...


def _values(image: Image, columns: Iterable[LogColumn]) -> tuple[Hashable, ...]:
    return tuple(image.values.get(c.physical) for c in columns)


def snapshot_changes(recording: Readable, after: int, through: int) -> Bag:
    """STANDARD by the full join of two snapshots on row id: columns are followed by their physical names."""
    log = recording.log
    columns = log.columns[through]
    old_rows, new_rows = recording.snapshots[after], recording.snapshots[through]
    bag: Bag = Counter()

    def show(change_type: str, image: Image) -> None:
        version = image.commit_version
        bag[Change(change_type, version, log.times[version], _values(image, columns))] += 1

    for row_id in old_rows.keys() | new_rows.keys():
        old, new = old_rows.get(row_id), new_rows.get(row_id)
        if old is None and new is not None:
            show("INSERT", new)
        elif old is not None and new is None:
            show("DELETE", old)
        elif old is not None and new is not None and _values(old, columns) != _values(new, columns):
            show("UPDATE_BEFORE", old)
            show("UPDATE_AFTER", new)
    return bag


def initial_rows(recording: Readable, after: int, through: int, mode: StreamMode) -> Bag:
    """SHOW_INITIAL_ROWS on its first read: the table at `through`; in APPEND_ONLY that at `after`, and appends."""
    standard = mode is StreamMode.STANDARD
    log = recording.log
    bag = Bag() if standard else snapshot_appends(recording, after, through)
    for image in recording.snapshots[through if standard else after].values():
        version = image.commit_version
        bag[Change("INSERT", version, log.times[version], _values(image, log.columns[through]))] += 1
    return bag


def snapshot_appends(recording: Readable, after: int, through: int) -> Bag:
    """APPEND_ONLY, commit by commit: row ids that no earlier version of the history had, as first committed.

    A row that was inserted before the interval and comes back by RESTORE inside it is not new.
    """
    log = recording.log
    seen = {row_id for version in range(after + 1) for row_id in recording.snapshots[version]}
    bag: Bag = Counter()
    for version in range(after + 1, through + 1):
        for row_id, image in recording.snapshots[version].items():
            if row_id not in seen:
                assert image.commit_version == version, f"row {row_id} says {image.commit_version} at {version}"
                seen.add(row_id)
                bag[Change("INSERT", version, log.times[version], _values(image, log.columns[through]))] += 1
    return bag


def _modelled(recording: Recording, through: int) -> list[int]:
    """Positions, among the columns at `through`, of those that the plain-Python table knows."""
    model = {c.name: c for c in recording.state_at(through).columns}
    columns = recording.log.columns[through]
    return [i for i, c in enumerate(columns) if model[c.name].generated != "identity"]


def without_unmodelled(recording: Recording, bag: Bag, through: int) -> Bag:
    """The bag without identity columns, which the plain-Python table does not predict."""
    kept = _modelled(recording, through)
    out: Bag = Counter()
    for change, count in bag.items():
        values = tuple(change.values[i] for i in kept)
        out[Change(change.change_type, change.commit_version, change.commit_time, values)] += count
    return out


def python_table(recording: Recording, after: int, through: int, *, appends: bool = False) -> Bag:
    """What the plain-Python table says of a window, STANDARD or APPEND_ONLY; without identity columns."""
    first, last = recording.step_of(after), recording.step_of(through)
    states = list(recording.history.states)
    found: list[ModelChange] = (
        model_appends(states, first, last) if appends else model_changes(states[first], states[last])
    )
    columns = [recording.log.columns[through][i] for i in _modelled(recording, through)]
    keys = {c.name: c.key for c in states[last].columns}
    bag: Bag = Counter()
    for change in found:
        version = recording.step_versions[change.step][-1]
        values = tuple(change.values.get(keys[c.name]) for c in columns)
        bag[Change(change.change_type, version, recording.log.times[version], values)] += 1
    return bag


def unapplied(recording: Readable, bag: Bag, after: int, through: int) -> Counter[tuple[Hashable, ...]]:
    """Old table + change set - new table, as a bag of rows: nothing is left of it where the change set is right."""
    columns = recording.log.columns[through]
    left: Counter[tuple[Hashable, ...]] = Counter()
    for sign, version in ((1, after), (-1, through)):
        for image in recording.snapshots[version].values():
            left[_values(image, columns)] += sign
    for change, count in bag.items():
        left[change.values] += count if change.change_type in ADDS else -count
    return Counter({values: count for values, count in left.items() if count})


def narrows(recording: Readable, after: int, through: int) -> bool:
    """Whether a RESTORE in the window took back a type change: INCOMPATIBLE_SCHEMA_CHANGE is an answer then, too."""
    columns = recording.log.columns
    for version in range(after, through):
        now = {c.physical: c.type for c in columns[version]}
        later = {c.physical: c.type for c in columns[version + 1]}
        if recording.log.operations[version + 1] == "RESTORE" and any(later.get(p, t) != t for p, t in now.items()):
            return True
    return False


def differences(expected: Counter[Change], actual: Counter[Change], lines_max: int = 12) -> str:
    """What is missing and what is too much, for people to read; empty where the bags are equal."""
    lines = []
    for title, bag in (("missing", expected - actual), ("unexpected", actual - expected)):
        if bag:
            lines.append(f"{title}: {bag.total()} rows")
            lines += [f"  {count} x {change}" for change, count in sorted(bag.items(), key=repr)[:lines_max]]
    return "\n".join(lines)
