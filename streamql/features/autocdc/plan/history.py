"""SCD type 2: a row for each state of a key, with the sequences at which the state began and ended.

The rows that the target has of the touched keys are made events again, and so is what the target's state remembers. Then one fold over the
events of a key, in their order, makes its rows: a row begins where a tracked column differs from the row before, and ends where the next
one begins or the key is deleted. What the rows do not tell is remembered: events that joined a row with equal tracked columns, and deletes
that ended no row. So the rows are a function of the set of events.
"""

from __future__ import annotations

from streamql.features.autocdc.plan import assumed
from streamql.features.autocdc.plan.carried import PARTIAL, REMEMBERED, TOLD, carried, raw
from streamql.features.autocdc.plan.columns import END_AT, START_AT, Columns
from streamql.features.autocdc.plan.events import (
    DELETES,
    EVENT,
    GONE,
    OP,
    PLACE,
    ROW,
    SEQ,
    STATE,
    Order,
    checked,
    named,
    raised,
    same_key,
)
from streamql.features.autocdc.plan.values import together
from streamql.names import quote
from streamql.shared import constants

_START, _END = quote(START_AT), quote(END_AT)
_STORED, _UNTIL, _WAS, _HEAD, _BEGAN, _SIZE, _NEXT = (
    f"`__cdc_{name}`" for name in ("stored", "until", "was", "head", "began", "size", "next")
)
"""_STORED: whether an event is a row of the target; _UNTIL: the END_AT of that row. _WAS: the row of the target that began at the sequence
of an event, as (until, values); NULL: there was none. _HEAD: whether a state begins with the event. _BEGAN: the sequence at which its state
began, and _WAS of that event. _SIZE: how many events its state has. _NEXT: the sequence at which its state ends, on the last of them."""
_ROWS_NOW = quote(constants("autoCdc")["rowsNow"])
"""The rows that the target has of the keys of the events."""


def rows(columns: Columns, order: Order, events: str, target: str) -> str:
    """Returns the query of the rows that the MERGE and the state take. `events`: the relation that has the events. `target`: the name of
    the target."""
    keys, names = named(columns.keys), named(columns.all)
    own = together([(c.sql, c.type) for c in columns.values])
    tracked = together([(c.sql, c.type) for c in columns.tracked])
    if order.sequence is None:
        every, in_place = _in_commits(columns, order, events, target), f"{SEQ}, {PLACE}, {DELETES}"
    else:
        every, in_place = _by_sequence(columns, order, events, target), f"{SEQ}, {DELETES}, {PLACE}"
    peers = f"OVER (PARTITION BY {keys}, {SEQ})"
    was = f"first(if({_STORED}, named_struct('until', {_UNTIL}, 'values', {own}), NULL), true) {peers}"
    in_order = f"OVER (PARTITION BY {keys} ORDER BY {in_place})"
    every = f"SELECT *, {was} AS {_WAS} FROM ({every})"
    if columns.kept_nulls:
        every = carried(columns, order, every, in_place, [_WAS])
    last = f"lead(true) {in_order} IS NULL OR NOT (lead({SEQ}) {in_order} <=> {SEQ})"
    if order.sequence is not None:
        last = _agreeing(columns, order, in_order, last)
    counting = f"SELECT * FROM (SELECT *, {last} AS `__cdc_last` FROM ({every})) WHERE `__cdc_last`"
    over = f"OVER (PARTITION BY {keys} ORDER BY {SEQ})"
    until_here = f"OVER (PARTITION BY {keys} ORDER BY {SEQ} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    head = f"NOT {DELETES} AND (coalesce(lag({DELETES}) {over}, true) OR NOT (lag({tracked}) {over} <=> {tracked}))"
    heads = (
        f"SELECT *, {head} AS {_HEAD}, coalesce(lag({DELETES}) {over}, true) AS `__cdc_ends_nothing` FROM ({counting})"
    )
    began = f"last(if({_HEAD}, named_struct('at', {SEQ}, 'was', {_WAS}), NULL), true) {until_here}"
    ends = f"coalesce(lead({_HEAD} OR {DELETES}) {over}, true)"
    states = (
        f"SELECT *, {began} AS {_BEGAN}, count_if({_HEAD}) {until_here} AS `__cdc_state_number`, lead({SEQ}) {over} AS {_NEXT}, "
        f"{ends} AS `__cdc_is_tail` FROM ({heads})"
    )
    sized = (
        f"SELECT *, count_if(NOT {DELETES}) OVER (PARTITION BY {keys}, `__cdc_state_number`) AS {_SIZE} FROM ({states})"
    )
    changed = f"{_BEGAN}.was IS NULL OR NOT ({_BEGAN}.was.until <=> {_NEXT}) OR NOT ({_BEGAN}.was.values <=> {own})"
    made = [
        f"if(NOT {DELETES} AND `__cdc_is_tail` AND ({changed}), {_made(ROW, f'{_BEGAN}.at', _NEXT)}, NULL)",
        f"if({_WAS} IS NOT NULL AND NOT {_HEAD}, {_made(GONE, SEQ, SEQ)}, NULL)",
    ]
    if order.sequence is not None:
        is_untold = f"if({DELETES}, `__cdc_ends_nothing`, {_SIZE} > 1) AND {PLACE} <> {REMEMBERED}"
        if columns.kept_nulls:
            is_untold = f"({is_untold}) OR (NOT {DELETES} AND {PARTIAL})"
        made.append(f"if({is_untold}, {_made(EVENT, SEQ, SEQ)}, NULL)")
    exploded = f"SELECT *, explode(filter(array({', '.join(made)}), x -> x IS NOT NULL)) AS `__cdc_made` FROM ({sized})"
    if order.sequence is not None:  # the state has the events as they came
        ops = {
            c: f"if(`__cdc_made`.op = '{EVENT}', {raw(i)}, {c.sql}) AS {c.sql}"
            for i, c in enumerate(columns.kept_nulls)
        }
        names = ", ".join(ops.get(c, c.sql) for c in columns.all)
    return (
        f"SELECT {names}, {SEQ}, {DELETES}, `__cdc_made`.op AS {OP}, `__cdc_made`.start AS {_START}, `__cdc_made`.end AS {_END} "
        f"FROM ({exploded})"
    )


def _made(op: str, start: str, end: str) -> str:
    return f"named_struct('op', '{op}', 'start', {start}, 'end', {end})"


def _touched(columns: Columns, relation: str, events: str, selected: str, where: str = "") -> str:
    """Returns a query of the rows of a relation whose keys have events."""
    same = same_key(columns, "t", "k")
    return f"SELECT {selected} FROM {relation} AS t LEFT SEMI JOIN {events} AS k ON {same}{where}"


def _in_commits(columns: Columns, order: Order, events: str, target: str) -> str:
    """Returns the events of a stream, behind the current rows of their keys."""
    keys, names = named(columns.keys), named(columns.all)
    stored = f"{named(columns.all, 't')}, t.{_START} AS {SEQ}, -2 AS {PLACE}, false AS {DELETES}, true AS {_STORED}, t.{_END} AS {_UNTIL}"
    # The old image of a row whose key has a new one ends nothing: where the new state begins, the old one ends.
    is_last = f"lead(true) OVER (PARTITION BY {keys} ORDER BY {order.by}) IS NULL"
    counts = checked(columns, order, f"{PLACE} >= 0 OR {is_last}")
    new = (
        f"SELECT {names}, {SEQ}, {PLACE}, {DELETES}, false AS {_STORED}, NULL AS {_UNTIL} "
        f"FROM (SELECT *, {counts} AS `__cdc_counts` FROM {events}) WHERE `__cdc_counts`"
    )
    # Times of commits may go back, by a RESTORE of the source. A state does not begin before the one that it follows.
    before = f"PARTITION BY {keys} ORDER BY {PLACE}, {DELETES} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return (
        f"SELECT {names}, max({SEQ}) OVER ({before}) AS {SEQ}, {PLACE}, {DELETES}, {_STORED}, {_UNTIL} "
        f"FROM ({_touched(columns, target, events, stored, f' WHERE t.{_END} IS NULL')} UNION ALL {new})"
    )


def _by_sequence(columns: Columns, order: Order, events: str, target: str) -> str:
    """Returns all events of the keys: the new ones, those that rows of the target tell, and those of the state."""
    names = named(columns.all)
    flags = f"{TOLD} AS {PLACE}, false AS {DELETES}, true AS {_STORED}, {_END} AS {_UNTIL}"
    stored = f"SELECT {names}, {_START} AS {SEQ}, {flags} FROM {_ROWS_NOW}"
    following = f"lead({_START}) OVER (PARTITION BY {named(columns.keys)} ORDER BY {_START})"
    ended = (
        f"SELECT {names}, {_END} AS {SEQ}, {TOLD} AS {PLACE}, true AS {DELETES}, false AS {_STORED}, NULL AS {_UNTIL} "
        f"FROM (SELECT *, {following} AS {_NEXT} FROM {_ROWS_NOW}) WHERE {_END} IS NOT NULL AND NOT ({_NEXT} <=> {_END})"
    )
    state = _touched(
        columns,
        STATE,
        events,
        f"{named(columns.all, 't')}, t.{SEQ}, {REMEMBERED} AS {PLACE}, t.{DELETES}, false AS {_STORED}, NULL AS {_UNTIL}",
    )
    new = f"SELECT {names}, {SEQ}, {checked(columns, order, '0')} AS {PLACE}, {DELETES}, false AS {_STORED}, NULL AS {_UNTIL} FROM {events}"
    now = _touched(columns, target, events, f"{named(columns.all, 't')}, t.{_START}, t.{_END}")
    return f"WITH {_ROWS_NOW} AS ({now}) {new} UNION ALL {stored} UNION ALL {ended} UNION ALL {state}"


def _agreeing(columns: Columns, order: Order, in_order: str, value: str) -> str:
    """Returns `value`. It fails for an event that differs from the one that the target has at its sequence."""
    before = f"lag({PLACE}) {in_order} = 0 AND lag({SEQ}) {in_order} <=> {SEQ} AND NOT lag({DELETES}) {in_order}"
    differs = []
    for place, of in ((TOLD, columns.tracked), (REMEMBERED, columns.values)):
        own = together([(c.sql, c.type) for c in of if c not in columns.kept_nulls])
        differs.append(f"({PLACE} = {place} AND NOT (lag({own}) {in_order} <=> {own}))")
    return f"if(NOT {DELETES} AND {before} AND ({' OR '.join(differs)}), {raised(columns, order)}, {value})"


def merge(target: str, columns: Columns, rows: str, evolution: str, *, assumes: bool) -> str:
    """Returns the MERGE. `rows`: the relation that has its rows. `evolution`: `WITH SCHEMA EVOLUTION `, or empty. `assumes`: the rows may
    come from the changes alone."""
    on = f"t.{_START} <=> s.{_START}" if not assumes else assumed.condition()
    made = "".join(f"{c.sql} = s.{c.sql}, " for c in columns.values)
    names = f"{named(columns.all)}, {_START}, {_END}"
    values = f"{named(columns.all, 's')}, s.{_START}, s.{_END}"
    more = assumed.clauses(columns, made) if assumes else ""
    inserted = ", ".join(f"'{op}'" for op in (ROW, *(assumed.INSERTED if assumes else ())))
    return (
        f"MERGE {evolution}INTO {target} AS t USING {rows} AS s ON {same_key(columns, 't', 's')} AND {on} "
        f"WHEN MATCHED AND s.{OP} = '{GONE}' THEN DELETE "
        f"WHEN MATCHED AND s.{OP} = '{ROW}' THEN UPDATE SET {made}{_END} = s.{_END} "
        f"{more}WHEN NOT MATCHED AND s.{OP} IN ({inserted}) THEN INSERT ({names}) VALUES ({values})"
    )
