"""What a copy and a history must be, from the set of events of a key: plain Python, with no order of arrival and no batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby
from typing import NamedTuple


class Event(NamedTuple):
    """An event of a key. `v`: tracked. `w`: not tracked. Two events of a key with one sequence are equal, or one of them is a delete, or
    they set different columns whose NULLs are ignored."""

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


def counting(events: Iterable[Event], kept: Collection[str] = ()) -> list[Event]:
    """The events that count, in order, with the values that the key has after each. Of those with one sequence a delete counts, if there is
    one. `kept`: the columns in which a NULL leaves the value as it is."""
    found: list[Event] = []
    for seq, group in groupby(sorted(set(events), key=lambda e: e.seq), key=lambda e: e.seq):
        same = list(group)
        if any(e.deletes for e in same):
            found.append(Event(seq, True, None, None))
            continue
        before = found[-1] if found else Event(seq, True, None, None)

        def value(name: str, same: list[Event] = same, before: Event = before) -> str | None:
            given = [getattr(e, name) for e in same]
            if name not in kept:
                return given[-1]
            return next((g for g in given if g is not None), getattr(before, name))

        found.append(Event(seq, False, value("v"), value("w")))
    return found


def copy_of(events: Iterable[Event], kept: Collection[str] = ()) -> tuple[str | None, str | None] | None:
    """The row of the key; None: it has none."""
    last = counting(events, kept)[-1]
    return None if last.deletes else (last.v, last.w)


def history_of(events: Iterable[Event], kept: Collection[str] = ()) -> list[State]:
    """The rows of the key, in order."""
    made: list[State] = []
    is_open = False
    for event in counting(events, kept):
        if is_open and not event.deletes and event.v == made[-1].v:
            made[-1] = made[-1]._replace(w=event.w)
            continue
        if is_open:
            made[-1] = made[-1]._replace(end=event.seq)
        is_open = not event.deletes
        if is_open:
            made.append(State(event.v, event.w, event.seq, None))
    return made
