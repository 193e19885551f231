"""The observer: notes what happens in the statement's thread, and lets the sender send it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamql.catalog.observers import Observer, Seen
from streamql.features.openlineage.configured import is_on
from streamql.features.openlineage.note import notes
from streamql.features.openlineage.sender import Sender

_SENDER = Sender()


def _note(spark: SparkSession, seen: Seen) -> None:
    for note in notes(spark, seen):
        _SENDER.put(note)


def _close() -> None:
    _SENDER.close()


OBSERVER = Observer(is_on=is_on, began=_note, recorded=_note, close=_close)
