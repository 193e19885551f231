"""The rows of a history, from the changes of a stream alone, so that the target need not be read.

The old image of a change tells the row that the target has now, if the history was kept from the same stream. The MERGE looks: it counts a
row of the target that is otherwise, and is not committed then. Then the rows are computed from those of the target (`history`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamql.features.autocdc.plan.columns import END_AT, START_AT, Column, Columns
from streamql.features.autocdc.plan.events import DELETES, GONE, OP, PLACE, ROW, SEQ, named
from streamql.features.autocdc.plan.values import same_as_stored, together
from streamql.names import quote
from streamql.shared import constants

_NAMES = constants("autoCdc")
ASSUMES = _NAMES["assumes"] + "()"
"""The function that tells whether the target is assumed to be what the old images show. It exists in this statement only."""
ENDED, SAME, NEW, NEXT, UNKNOWN = (_NAMES[name] for name in ("ended", "same", "new", "next", "unknown"))
"""ENDED: the current row of the key ends. SAME: it gets other values in columns that are not tracked. NEW: the key has no current row, and
gets one. NEXT: the key gets the row behind one that has ended. UNKNOWN: the changes of the key do not tell what to do, or a check would
rewrite files in which nothing changes."""

_START, _END = quote(START_AT), quote(END_AT)
_BEFORE, _NTH, _LAST, _MADE = (f"`__cdc_{name}`" for name in ("before", "nth", "last", "made"))
"""_BEFORE: the change before this one, as (place, and the columns that are not keys, by their numbers). _NTH: the number of the change in
its key, from 1. _LAST: whether it is the last one. _MADE: what happens to a row, as (op, start, end, whether its values are _BEFORE's)."""


def is_possible(columns: Columns) -> bool:
    """Returns whether the changes can tell the rows. A NULL that keeps a value needs the row that has the value."""
    return not columns.kept_nulls and not columns.missing


def either(columns: Columns, exact: str, events: str) -> str:
    """Returns the query of the rows: if ASSUMES is true, by the changes alone, and else those of `exact`. `events`: the relation that has
    the events."""
    return f"SELECT * FROM ({_rows(columns, events)}) WHERE {ASSUMES} UNION ALL SELECT * FROM ({exact}) WHERE NOT {ASSUMES}"


def _rows(columns: Columns, events: str) -> str:
    before = {c: f"{_BEFORE}.`{i}`" for i, c in enumerate(columns.values)}
    window = f"PARTITION BY {named(columns.keys)} ORDER BY {PLACE}, {DELETES}"
    change = ", ".join(["'place'", PLACE, *(f"'{i}', {c.sql}" for i, c in enumerate(columns.values))])
    numbered = (
        f"SELECT *, lag(named_struct({change})) OVER ({window}) AS {_BEFORE}, row_number() OVER ({window}) AS {_NTH}, "
        f"lead(true) OVER ({window}) IS NULL AS {_LAST} FROM {events}"
    )
    is_old, is_pair = f"{PLACE} < 0", f"{_NTH} = 2 AND {PLACE} >= 0 AND {_BEFORE}.place < 0"
    ended = _made(ENDED, "NULL", SEQ, is_before=True)
    made = (
        f"CASE WHEN {_NTH} = 1 AND {is_old} THEN array({_made(ENDED, 'NULL', SEQ)}) "
        f"WHEN {_NTH} = 1 AND NOT {DELETES} THEN array({_made(NEW, SEQ, 'NULL')}) "
        f"WHEN {is_pair} AND {DELETES} THEN array({ended}) "
        f"WHEN {is_pair} AND {_equal(columns.values, before)} THEN array({_made(UNKNOWN, 'NULL', 'NULL')}) "
        f"WHEN {is_pair} AND {_equal(columns.tracked, before)} THEN array({_made(SAME, 'NULL', 'NULL')}) "
        f"WHEN {is_pair} THEN array({ended}, {_made(NEXT, SEQ, 'NULL')}) "
        f"ELSE array({_made(UNKNOWN, 'NULL', 'NULL')}) END"
    )
    exploded = f"SELECT *, explode({made}) AS {_MADE} FROM ({numbered}) WHERE {_LAST}"
    values = [f"if({_MADE}.is_before, {before[c]}, {c.sql}) AS {c.sql}" if c in before else c.sql for c in columns.all]
    return (
        f"SELECT {', '.join(values)}, {SEQ}, {DELETES}, {_MADE}.op AS {OP}, {_MADE}.start AS {_START}, {_MADE}.end AS {_END} "
        f"FROM ({exploded})"
    )


def _equal(columns: Sequence[Column], before: Mapping[Column, str]) -> str:
    own = together([(c.sql, c.source_type) for c in columns])
    return f"{own} <=> {together([(before[c], c.source_type) for c in columns])}"


def _made(op: str, start: str, end: str, *, is_before: bool = False) -> str:
    return f"named_struct('op', '{op}', 'start', {start}, 'end', {end}, 'is_before', {str(is_before).lower()})"


def condition() -> str:
    """Returns what the MERGE compares beside the keys."""
    return f"if(s.{OP} IN ('{ROW}', '{GONE}'), t.{_START} <=> s.{_START}, s.{OP} <> '{NEXT}' AND t.{_END} IS NULL)"


INSERTED = (NEW, NEXT, ENDED, SAME)
"""What is inserted if the target has no current row of its key."""


def clauses(columns: Columns, made: str) -> str:
    """Returns clauses for rows that match. `made`: the assignments of the columns that are not keys, each with a comma behind it.

    A row that is as assumed is updated or inserted. Another one is deleted, or inserted where there should be one. So the MERGE deletes no
    row, and updates and inserts as many as `either` gives, exactly if the target is as assumed.
    """
    is_as_assumed = same_as_stored(columns.tracked)
    set_same = (
        f"WHEN MATCHED AND s.{OP} = '{SAME}' AND {is_as_assumed} THEN UPDATE SET {made.removesuffix(', ')} "
        if made
        else ""
    )
    return (
        f"WHEN MATCHED AND s.{OP} = '{ENDED}' AND {is_as_assumed} AND t.{_START} < s.{_END} THEN UPDATE SET {_END} = s.{_END} "
        f"{set_same}"
        f"WHEN MATCHED AND s.{OP} IN ('{ENDED}', '{SAME}', '{NEW}') THEN DELETE "
    )
