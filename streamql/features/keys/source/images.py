"""Row images that are compared by key. Each function takes one call to the JVM."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame

from streamql.changes.build import CHANGE_TYPE_COLUMN
from streamql.delta.jvm import JavaObject, frame, java_frame, scala
from streamql.delta.table import ROW_ID, ROW_VERSION


def _images(rows: DataFrame) -> JavaObject:
    return scala(rows.sparkSession).keys.KeyedImages


def changed_by_key(
    before: DataFrame,
    after: DataFrame,
    key: Sequence[str],
    subjects: tuple[str, str],
    *,
    bits: int,
    in_one_task: bool,
    bitwise: bool,
) -> DataFrame:
    """Returns the rows of the change set of images before and after, which have the columns row id, version, and the values. The change
    type comes first, and a hash of the key stands for the row id. Running it raises KEY_NOT_UNIQUE.

    `subjects`: what has the rows before, and those after, for errors. `bits`: if it is not 0, hashes are compared first, in 2 ** `bits`
    buckets of keys. Then a second scan reads the rows in buckets that differ. `in_one_task`: rows are compared without a shuffle.
    `bitwise`: as `images.compared` has it.
    """
    names = [CHANGE_TYPE_COLUMN, ROW_ID, ROW_VERSION, *before.columns[2:]]
    made = _images(before).changes(
        java_frame(before),
        java_frame(after),
        json.dumps(list(key)),
        json.dumps(names),
        json.dumps(list(subjects)),
        bits,
        in_one_task,
        bitwise,
    )
    return frame(before.sparkSession, made)


def with_unique_keys(rows: DataFrame, key: Sequence[str], subject: str) -> DataFrame:
    """Returns the rows, with a hash of the key for the row id. Running them raises KEY_NOT_UNIQUE if two have one key."""
    return frame(rows.sparkSession, _images(rows).unique(java_frame(rows), json.dumps(list(key)), subject))


def without_keys_of(rows: DataFrame, others: DataFrame, key: Sequence[str]) -> DataFrame:
    """Returns the rows whose key none of `others` has. Both have the table's columns."""
    made = _images(rows).without(java_frame(rows), java_frame(others), json.dumps(list(key)))
    return frame(rows.sparkSession, made)


def with_key_hash(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Returns the rows, with a hash of the key for the row id."""
    return frame(rows.sparkSession, _images(rows).withKeyHash(java_frame(rows), json.dumps(list(key))))
