"""What Debezium would send of a table `flights` in a database: an envelope for each change, made from the real flights.

The envelope is that of Debezium's JSON converter without schemas: `before`, `after`, `op` (r: read by the first snapshot, c: created,
u: updated, d: deleted), `source.lsn` (the place of the change in the database's log) and `ts_ms`. A tombstone follows a delete.
"""

from __future__ import annotations

import csv
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from examples.topics.producer import Event

Row = dict[str, str | int | None]

LATE_ONE_IN = 40
"""One event in so many is sent a day later than it happened."""
TWICE_ONE_IN = 100


def events(months: Sequence[Sequence[str]]) -> list[Event]:
    """The events of months of flights (lines of CSV under a header), in the order in which they are sent.

    A flight is created as scheduled. It departs, or it is deleted, if it was cancelled. It arrives. Those of the first day are in the first
    snapshot. Some events are sent a day late, and some twice.
    """
    sent: list[Event] = []
    late: list[Event] = []
    lsn = 0
    for day, changes in enumerate(_days(months)):
        held, late = late, []
        for key, op, before, after in changes:
            lsn += 10
            event = _event(key, "r" if day == 0 and op == "c" else op, before, after, lsn)
            made = [event, Event(event.key, None, {"op": "tombstone"})] if op == "d" else [event]
            if _chosen(f"{key} {lsn}", "late", LATE_ONE_IN):
                late += made
                continue
            sent += made * (2 if _chosen(f"{key} {lsn}", "twice", TWICE_ONE_IN) else 1)
        sent += held
    return sent + late


Change = tuple[str, str, Row | None, Row | None]
"""Key, op, before, after."""


def _days(months: Sequence[Sequence[str]]) -> Iterator[list[Change]]:
    for lines in months:
        for _, flights in groupby(csv.DictReader(lines), key=lambda flight: (flight["month"], flight["day"])):
            rows = [(_key(flight), flight) for flight in flights]
            scheduled = {key: _row(key, flight, "scheduled", None) for key, flight in rows}
            yield [
                *((key, "c", None, row) for key, row in scheduled.items()),
                *(change for key, flight in rows for change in _changes(key, flight, scheduled[key])),
            ]


def _changes(key: str, flight: Mapping[str, str], row: Row) -> Iterator[Change]:
    if flight["dep_time"] == "NA":
        yield key, "d", row, None
        return
    departed = _row(key, flight, "departed", int(flight["dep_delay"]))
    yield key, "u", row, departed
    if flight["arr_delay"] != "NA":
        yield key, "u", departed, _row(key, flight, "arrived", int(flight["arr_delay"]))


def _row(key: str, flight: Mapping[str, str], state: str, delay: int | None) -> Row:
    route = f"{flight['origin']}-{flight['dest']}"
    return {"id": key, "carrier": flight["carrier"], "route": route, "state": state, "delay": delay}


def _event(key: str, op: str, before: Row | None, after: Row | None, lsn: int) -> Event:
    source = {"connector": "postgresql", "db": "airport", "table": "flights", "lsn": lsn}
    envelope = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1_357_000_000_000 + lsn}
    return Event(json.dumps({"id": key}), json.dumps(envelope), {"op": op, "lsn": lsn, **(after or before or {})})


def _key(flight: Mapping[str, str]) -> str:
    """Unique in the data."""
    date = f"{flight['year']}-{flight['month']:0>2}-{flight['day']:0>2}"
    return f"{date}/{flight['carrier']}/{flight['flight']}/{flight['origin']}"


def _chosen(key: str, purpose: str, one_in: int) -> bool:
    return zlib.crc32(f"{purpose} {key}".encode()) % one_in == 0
