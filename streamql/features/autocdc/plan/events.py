"""The events of a statement: the rows of its source, each with its order and whether it deletes its key, as SQL text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql.types import DataType, StructType

from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.features.autocdc.language.statement import AutoCdc
from streamql.features.autocdc.plan.columns import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    Column,
    Columns,
    Tables,
)
from streamql.features.autocdc.plan.values import comparable, leaves_of, together
from streamql.names import quote
from streamql.shared import constants

SEQ, PLACE, DELETES, ENDS, TRUNCATES = (f"`__cdc_{name}`" for name in ("seq", "place", "deletes", "ends", "truncates"))
"""Columns of an event beside those of the target. SEQ: its sequence. PLACE: among the events of its key that have one sequence. DELETES:
whether it deletes its key. ENDS: whether the row is gone, and not only another image of an update. TRUNCATES: whether it deletes every
key."""

_NAMES = constants("autoCdc")
INTERVAL_END = _NAMES["intervalEnd"] + "()"
"""The function that gives the time at which the interval of the source's streams ends. It exists in this statement only."""
EVENTS, STATE = quote(_NAMES["events"]), quote(_NAMES["state"])
"""The relations that have the events, and what the target's state remembers."""
OP = quote(_NAMES["op"])
"""What happens to a row: ROW is merged into the target, GONE is deleted there, EVENT is remembered by the target's state."""
ROW, GONE, EVENT = "row", "gone", _NAMES["event"]

FAILED = "AUTO_CDC_FAILED"
"""The first word of an error that a statement raises while it reads its events; then its code, and what it says."""

_OLD = f"{quote(CHANGE_TYPE)} IN ('DELETE', 'UPDATE_BEFORE')"


@dataclass(frozen=True)
class Order:
    """How the events of a key are ordered: by `sequence` (SQL text); None: as the stream has committed them. `is_snapshot`: a key has one
    event, because the source is a snapshot."""

    sequence: str | None = None
    is_snapshot: bool = False

    @property
    def by(self) -> str:
        """Returns the columns by which the events of a key are ordered."""
        return f"{PLACE}, {DELETES}" if self.sequence is None else f"{SEQ}, {DELETES}"

    @property
    def clash(self) -> str:
        """Returns what is said of two events with one place in the order."""
        if self.is_snapshot:
            return "two rows of the snapshot differ and have one key: "
        return f"two events of a key differ and have one {'commit' if self.sequence is None else 'sequence'}: "


def order_of(statement: AutoCdc, tables: Tables) -> Order:
    """Returns how events are ordered. Raises AUTO_CDC_ORDER if nothing tells the order."""
    if statement.is_snapshot:
        return Order(is_snapshot=True)
    if statement.sequence_by is not None:
        return Order(statement.sequence_by)
    needed = (CHANGE_TYPE, COMMIT_VERSION, *((COMMIT_TIMESTAMP,) if statement.history == 2 else ()))
    missing = [name for name in needed if not tables.has(name)]
    if missing:
        raise StreamqlError(
            "AUTO_CDC_ORDER",
            f"nothing tells the order of the events: the source does not give {', '.join(missing)}",
            hint="write SEQUENCE BY expression, or let the query give the columns of the stream: SELECT * FROM s",
        )
    return Order()


def events(statement: AutoCdc, columns: Columns, tables: Tables, order: Order) -> str:
    """Returns the query of the events: the columns of the target under their names, then SEQ, PLACE, DELETES, ENDS and TRUNCATES."""
    condition, truncates = _holds(statement.delete_when), _holds(statement.truncate_when)
    old = _OLD if tables.has(CHANGE_TYPE) else "false"
    where = ""
    if order.sequence is None:
        seq = quote(COMMIT_TIMESTAMP if statement.history == 2 else COMMIT_VERSION)
        if statement.history == 2:  # no column tells when a row was deleted: until the end
            seq = f"if({old}, {INTERVAL_END}, {seq})"
        place = f"if({old}, -1, {quote(COMMIT_VERSION)})"
        deletes, ends = f"({old}) OR {condition}", f"{quote(CHANGE_TYPE)} = 'DELETE' OR {condition}"
    else:
        seq = _needed(f"({order.sequence})", columns)
        place = "0"
        deletes, ends = f"({old}) OR {condition}", f"({old}) OR {condition}"
        if statement.delete_when is not None and old != "false":  # an event that was removed from the table of events
            deletes = ends = condition
            where = f" WHERE NOT ({old}) OR {condition} OR {truncates}"
        elif old != "false":
            where = " WHERE " + _refused_old(old) if statement.history == 2 else ""
    values = ", ".join(f"{quote(c.source)} AS {c.sql}" for c in columns.all)
    if statement.delete_when is None or order.sequence is None:
        truncates = f"NOT ({old}) AND {truncates}"
    flags = f"{seq} AS {SEQ}, {place} AS {PLACE}, {deletes} AS {DELETES}, {ends} AS {ENDS}, {truncates} AS {TRUNCATES}"
    return f"SELECT {values}, {flags} FROM {statement.source}{where}"


def _holds(condition: str | None) -> str:
    return "false" if condition is None else f"coalesce(({condition}), false)"


def _refused_old(old: str) -> str:
    """Returns a condition that drops the old image of an update, and fails for a deleted row: nothing tells its sequence."""
    message = failure(
        "AUTO_CDC_ORDER",
        "a row was deleted from the source of the stream, and SEQUENCE BY gives the sequence of its last state",
    )
    return f"NOT ({old}) OR ({quote(CHANGE_TYPE)} = 'DELETE' AND isnotnull(raise_error({message})))"


def _needed(sequence: str, columns: Columns) -> str:
    """Returns the sequence of an event, which must not be NULL."""
    keys = f"to_json(struct({', '.join(quote(c.source) for c in columns.keys)}))"
    message = failure("AUTO_CDC_ORDER", "the sequence of an event is NULL, with the key ", keys)
    return f"coalesce({sequence}, raise_error({message}))"


def failure(code: str, says: str, *more: str) -> str:
    """Returns the text that a statement raises, as SQL. `more`: SQL of texts behind `says`."""
    return f"concat({', '.join((quote_string(f'{FAILED} {code} {says}'), *more))})"


def named(columns: Iterable[Column], table: str = "") -> str:
    """Returns the names of columns in the target, with commas between. `table`: the name of the relation before each."""
    return ", ".join(f"{table}.{c.sql}" if table else c.sql for c in columns)


def same_key(columns: Columns, one: str, other: str) -> str:
    """Returns whether rows of two relations have one key."""
    return " AND ".join(f"{one}.{c.sql} <=> {other}.{c.sql}" for c in columns.keys)


def folded(value: str, data_type: DataType, window: str) -> str:
    """Returns the last value that is not NULL of the events in a window, also for each field of a struct. A delete has no value."""
    last = f"last(if({DELETES}, NULL, {value}), true) OVER ({window})"
    if not isinstance(data_type, StructType):
        return last
    fields = [f"{quote_string(f.name)}, {folded(f'{value}.{quote(f.name)}', f.dataType, window)}" for f in data_type]
    return f"if({last} IS NULL, NULL, named_struct({', '.join(fields)}))"


def checked(columns: Columns, order: Order, value: str) -> str:
    """Returns `value`, which is evaluated for each event. It fails if two events of a key that differ have one place in the order. Where a
    NULL leaves the value as it is (IGNORE NULL UPDATES), NULL and a value do not differ."""
    if not columns.values:
        return value
    own = together([(c.sql, c.type) for c in columns.values if c not in columns.kept_nulls])
    peers = f"OVER (PARTITION BY {named(columns.keys)} ORDER BY {order.by} RANGE BETWEEN CURRENT ROW AND CURRENT ROW)"
    differ = [f"NOT (first_value({own}) {peers} <=> {own})"]
    for leaf in leaves_of(columns.kept_nulls):
        one = comparable(leaf.of(), leaf.type)
        differ.append(f"({leaf.of()} IS NOT NULL AND NOT (first_value({one}, true) {peers} <=> {one}))")
    return f"if(NOT {DELETES} AND ({' OR '.join(differ)}), {raised(columns, order)}, {value})"


def raised(columns: Columns, order: Order, table: str = "") -> str:
    """Returns the expression that fails because two events of a key differ and have one place in the order. `table`: the relation that has
    the key."""
    keys = f"to_json(struct({named(columns.keys, table)}))"
    code = "AUTO_CDC_CONFLICT.SNAPSHOT" if order.is_snapshot else "AUTO_CDC_CONFLICT"
    return f"raise_error({failure(code, order.clash, keys)})"
