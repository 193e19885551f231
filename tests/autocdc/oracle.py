"""What a copy and a history must be, from the set of events of a key: plain Python, with no order of arrival and no batches."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple


class Event(NamedTuple):
    """An event of a key. `v`: tracked. `w`: not tracked. Two events of a key with one sequence are equal, or one of them is a delete."""

    seq: int
    deletes: bool
    v: str | None
    w: str | None


class State(NamedTuple):
    """A row of a history."""

    v: str | None
    w: str | None
    start: int
    end: int | None


def counting(events: Iterable[Event]) -> list[Event]:
    """The events that count, in order: of those with one sequence a delete, if there is one."""
    ordered = sorted(set(events), key=lambda e: (e.seq, e.deletes))
    return [list(same)[-1] for _, same in groupby(ordered, key=lambda e: e.seq)]


def copy_of(events: Iterable[Event]) -> tuple[str | None, str | None] | None:
    """The row of the key; None: it has none."""
    last = counting(events)[-1]
    return None if last.deletes else (last.v, last.w)


def history_of(events: Iterable[Event]) -> list[State]:
    """The rows of the key, in order."""
    made: list[State] = []
    is_open = False
    for event in counting(events):
        if is_open and not event.deletes and event.v == made[-1].v:
            made[-1] = made[-1]._replace(w=event.w)
            continue
        if is_open:
            made[-1] = made[-1]._replace(end=event.seq)
        is_open = not event.deletes
        if is_open:
            made.append(State(event.v, event.w, event.seq, None))
    return made
