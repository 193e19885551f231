"""Deletes beside those of the events: of every key by APPLY AS TRUNCATE WHEN, and those that the target's state remembers."""

from __future__ import annotations

from streamql.features.autocdc.plan.columns import Columns
from streamql.features.autocdc.plan.events import (
    DELETES,
    ENDS,
    EVENT,
    OP,
    PLACE,
    SEQ,
    STATE,
    TRUNCATES,
    Order,
    named,
    same_key,
)
from streamql.features.autocdc.plan.values import ddl


def truncated(columns: Columns, order: Order, events: str, target: str) -> str:
    """Returns the relation of the events, in which the last event that truncates is a delete of each key that there is. With SEQUENCE BY,
    the PLACE of such a delete is NULL: one row of the state remembers all of them."""
    keys, names = named(columns.keys), named(columns.all)
    own = f"SELECT {names}, {SEQ}, {PLACE}, {DELETES}, {ENDS} FROM {events} WHERE NOT {TRUNCATES}"
    every = f"SELECT {keys} FROM {target} UNION SELECT {keys} FROM {events} WHERE NOT {TRUNCATES}"
    place = f"t.{PLACE}" if order.sequence is None else "NULL"
    last = f"({_last(events)}) AS t"
    deleted = f"SELECT {_bare(columns, 'k')}, t.{SEQ}, {place}, true, true FROM ({every}) AS k CROSS JOIN {last}"
    return f"({own} UNION ALL {deleted})"


def truncations(columns: Columns, events: str) -> str:
    """Returns the query of the row by which the target's state remembers the last event that truncates; without rows if there is none."""
    flags = f"true AS {DELETES}, true AS {TRUNCATES}, '{EVENT}' AS {OP}"
    return f"SELECT {_bare(columns)}, {SEQ}, {flags} FROM ({_last(events)})"


def _last(events: str) -> str:
    """Returns the query of the last event that truncates; without rows if there is none."""
    return f"SELECT max({SEQ}) AS {SEQ}, max({PLACE}) AS {PLACE} FROM {events} WHERE {TRUNCATES} HAVING count(*) > 0"


def remembered(columns: Columns, rows: str, deleted: str) -> str:
    """Returns the query of rows, with a column `deleted`: the sequence of the last delete of their keys that the target's state remembers.
    NULL: it remembers none."""
    keys = named(columns.keys)
    of_all = f"SELECT max({SEQ}) FROM {STATE} WHERE {TRUNCATES}"
    of_keys = (
        f"SELECT {keys}, max({SEQ}) AS {deleted} FROM {STATE} WHERE NOT coalesce({TRUNCATES}, false) GROUP BY {keys}"
    )
    return (
        f"SELECT e.*, greatest(d.{deleted}, ({of_all})) AS {deleted} FROM {rows} AS e LEFT JOIN ({of_keys}) AS d "
        f"ON {same_key(columns, 'e', 'd')}"
    )


def _bare(columns: Columns, keys_of: str = "") -> str:
    """Returns the columns of a row without values. `keys_of`: the relation that gives its keys; empty: it has none."""
    return ", ".join(
        f"{keys_of}.{c.sql}" if keys_of and c in columns.keys else f"CAST(NULL AS {ddl(c.type)}) AS {c.sql}"
        for c in columns.all
    )
