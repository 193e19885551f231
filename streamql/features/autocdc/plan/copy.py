"""SCD type 1: a row for each key, with its last state.

With SEQUENCE BY, the target keeps the sequence of each row's last event in a column. The target's state remembers the deletes of keys that
have no row. So an event that comes late is compared with what came before it.
"""

from __future__ import annotations

from streamql.features.autocdc.plan.columns import Columns
from streamql.features.autocdc.plan.deletes import remembered, truncated, truncations
from streamql.features.autocdc.plan.events import (
    DELETES,
    ENDS,
    EVENT,
    GONE,
    OP,
    PLACE,
    ROW,
    SEQ,
    TRUNCATES,
    Order,
    checked,
    failure,
    folded,
    named,
    same_key,
)
from streamql.features.autocdc.plan.values import coalesced, same_as_stored

_LAST, _EPOCH, _IS_NEW, _DELETED = "`__cdc_last`", "`__cdc_epoch`", "`__cdc_is_new`", "`__cdc_deleted`"
"""_EPOCH: how many deletes of its key come before an event. _IS_NEW: whether the key was deleted before, so that its row begins anew.
_DELETED: the sequence of the last delete that the state remembers of a key."""


def rows(columns: Columns, order: Order, events: str, target: str, *, truncates: bool) -> str:
    """Returns the query of the rows that the MERGE and the state take: the last event of each key. `events`: the relation that has the
    events. `target`: the name of the target. `truncates`: whether the statement has APPLY AS TRUNCATE WHEN."""
    keys = named(columns.keys)
    window = f"PARTITION BY {keys} ORDER BY {order.by}"
    is_last = checked(columns, order, f"lead(true) OVER ({window}) IS NULL")
    values, more = named(columns.all), ""
    source = taken = truncated(columns, order, events, target) if truncates else events
    if columns.kept_nulls:
        here = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        source = f"(SELECT *, count_if({ENDS}) OVER ({window} {here}) AS {_EPOCH} FROM {taken})"
        within = f"PARTITION BY {keys}, {_EPOCH} ORDER BY {order.by} {here}"
        values = ", ".join(
            f"{folded(c.sql, c.type, within)} AS {c.sql}" if c in columns.kept_nulls else c.sql for c in columns.all
        )
        more = f", {_EPOCH} > 0 AS {_IS_NEW}"
    last = f"SELECT {values}, {SEQ}, {PLACE}, {DELETES}{more}, {is_last} AS {_LAST} FROM {source}"
    if order.sequence is None:
        return (
            f"SELECT * EXCEPT ({_LAST}, {PLACE}), if({DELETES}, '{GONE}', '{ROW}') AS {OP} FROM ({last}) WHERE {_LAST}"
        )
    is_later = f"{_DELETED} IS NULL OR {SEQ} > {_DELETED}"
    known = remembered(columns, f"(SELECT * FROM ({last}) WHERE {_LAST})", _DELETED)
    is_remembered = f"({is_later}) AND {PLACE} IS NOT NULL"
    ops = f"if({DELETES}, if({is_remembered}, array('{GONE}', '{EVENT}'), array('{GONE}')), array('{ROW}'))"
    made = (
        f"SELECT {named(columns.all)}, {SEQ}, {DELETES}, false AS {TRUNCATES}, explode({ops}) AS {OP} FROM ({known}) "
        f"WHERE {DELETES} OR {is_later}"
    )
    return f"{made} UNION ALL {truncations(columns, events)}" if truncates else made


def merge(target: str, columns: Columns, rows: str, evolution: str, stored: str | None, adds: bool) -> str:
    """Returns the MERGE. `rows`: the relation that has its rows. `evolution`: `WITH SCHEMA EVOLUTION `, or empty. `stored`: the column of
    the target that has the sequence of a row's last event; None: there is none. `adds`: it is not among the columns of the source."""
    on = same_key(columns, "t", "s")
    is_gone, is_row = f"s.{OP} = '{GONE}'", f"s.{OP} = '{ROW}'"
    older = "" if stored is None else f" AND (t.{stored} IS NULL OR t.{stored} <= s.{SEQ})"
    clauses = [f"WHEN MATCHED AND {is_gone}{older} THEN DELETE"]
    assigned = _assigned(columns) + ([f"{stored} = s.{SEQ}"] if adds else [])
    if assigned:
        before = "" if stored is None else f" AND (t.{stored} IS NULL OR t.{stored} < s.{SEQ})"
        clauses.append(f"WHEN MATCHED AND {is_row}{before} THEN UPDATE SET {', '.join(assigned)}")
    if stored is not None and columns.values:
        known = same_as_stored([c for c in columns.values if c not in columns.missing])
        clauses.append(
            f"WHEN MATCHED AND {is_row} AND t.{stored} = s.{SEQ} AND NOT ({known}) THEN UPDATE SET {_failing(columns)}"
        )
    names, values = named(columns.all), named(columns.all, "s")
    if adds:
        names, values = f"{names}, {stored}", f"{values}, s.{SEQ}"
    clauses.append(f"WHEN NOT MATCHED AND {is_row} THEN INSERT ({names}) VALUES ({values})")
    return f"MERGE {evolution}INTO {target} AS t USING {rows} AS s ON {on} " + " ".join(clauses)


def _assigned(columns: Columns) -> list[str]:
    made = []
    for c in columns.values:
        value = f"s.{c.sql}"
        if c in columns.kept_nulls and c not in columns.missing:
            value = f"if(s.{_IS_NEW}, s.{c.sql}, {coalesced(f's.{c.sql}', f't.{c.sql}', c.type)})"
        made.append(f"{c.sql} = {value}")
    return made


def _failing(columns: Columns) -> str:
    first = columns.values[0]
    keys = f"to_json(struct({named(columns.keys, 's')}))"
    message = failure(
        "AUTO_CDC_CONFLICT", "an event differs from an earlier one with the same key and sequence: ", keys
    )
    return f"{first.sql} = if(raise_error({message}) IS NULL, t.{first.sql}, t.{first.sql})"
