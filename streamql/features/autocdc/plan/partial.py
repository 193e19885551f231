"""IGNORE NULL UPDATES in a copy with SEQUENCE BY: an event sets the columns that it has a value for.

A late event sets a column whose value is older than the event, although the row is newer. So the target keeps a sequence for each of these
columns, also for each field of a struct: in `__SEQUENCES`, by the names of the columns. A late delete takes the values that are older.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamql.features.autocdc.plan.columns import SEQUENCES, Column, Columns
from streamql.features.autocdc.plan.deletes import remembered, truncated, truncations
from streamql.features.autocdc.plan.events import (
    DELETES,
    EVENT,
    OP,
    PLACE,
    ROW,
    SEQ,
    TRUNCATES,
    Order,
    checked,
    named,
    raised,
    same_key,
)
from streamql.features.autocdc.plan.values import Leaf, comparable, ddl, leaves_of, of_leaves, together
from streamql.names import quote

_DELETED, _GONE, _LIVES, _NEW, _MADE = (f"`__cdc_{name}`" for name in ("deleted", "gone", "lives", "new", "made"))
"""_DELETED: the sequence of the last delete that the state remembers of a key. _GONE: of the last delete of the key, also among the events;
older values are gone. _LIVES: whether an event is newer. _NEW: the sequence of the last delete among the events. _MADE: what is
done, as (op, seq)."""


def rows(columns: Columns, order: Order, events: str, target: str, *, truncates: bool) -> str:
    """Returns the query of the rows that the MERGE and the state take. One of a key has the last value that the events have for each
    column, with its sequence. SEQ is that of the last event; NULL: all are deleted. Arguments: those of `copy.rows`."""
    keys, within = named(columns.keys), f"OVER (PARTITION BY {named(columns.keys)})"
    taken = truncated(columns, order, events, target) if truncates else events
    gone = f"greatest(max(if({DELETES}, {SEQ}, NULL)) {within}, {_DELETED})"
    lives = checked(columns, order, f"NOT {DELETES}")
    marked = f"SELECT *, {gone} AS {_GONE}, {lives} AS {_LIVES} FROM ({remembered(columns, taken, _DELETED)})"
    seq = f"if({_LIVES} AND ({_GONE} IS NULL OR {SEQ} > {_GONE}), {SEQ}, NULL)"
    last = [f"max_by({c.sql}, {seq}) AS {c.sql}" for c in _whole(columns)]
    for i, leaf in enumerate(leaves_of(columns.kept_nulls)):
        has_value = f"if({leaf.of()} IS NULL, NULL, {seq})"
        last += [f"max_by({leaf.of()}, {has_value}) AS {_value(i)}", f"max({has_value}) AS {_sequence(i)}"]
    new = f"max(if({DELETES} AND {PLACE} IS NOT NULL, {SEQ}, NULL)) AS {_NEW}"
    grouped = (
        f"SELECT {', '.join([keys, *last])}, max({seq}) AS {SEQ}, {new}, max({_GONE}) AS {_GONE}, "
        f"max({_DELETED}) AS {_DELETED} FROM ({marked}) GROUP BY {keys}"
    )
    row, event = (f"named_struct('op', '{op}', 'seq', {of})" for op, of in ((ROW, SEQ), (EVENT, _NEW)))
    ops = f"if({_NEW} IS NOT NULL AND ({_DELETED} IS NULL OR {_NEW} > {_DELETED}), array({row}, {event}), array({row}))"
    names = _names(columns)
    made = (
        f"SELECT {', '.join(names)}, {_MADE}.seq AS {SEQ}, {_MADE}.op = '{EVENT}' AS {DELETES}, false AS {TRUNCATES}, {_GONE}, "
        f"{_MADE}.op AS {OP} FROM (SELECT * EXCEPT ({SEQ}), explode({ops}) AS {_MADE} FROM ({grouped}))"
    )
    if not truncates:
        return made
    none = ", ".join([*(f"NULL AS {name}" for name in names), SEQ, DELETES, TRUNCATES, f"NULL AS {_GONE}", OP])
    return f"{made} UNION ALL SELECT {none} FROM ({truncations(columns, events)})"


def _whole(columns: Columns) -> list[Column]:
    """Returns the columns that the last event of a key sets, also to NULL."""
    return [c for c in columns.values if c not in columns.kept_nulls]


def _names(columns: Columns) -> list[str]:
    kept = range(len(leaves_of(columns.kept_nulls)))
    return [c.sql for c in (*columns.keys, *_whole(columns))] + [name(i) for i in kept for name in (_value, _sequence)]


def _value(i: int) -> str:
    return f"`__cdc_value_{i}`"


def _sequence(i: int) -> str:
    return f"`__cdc_seq_{i}`"


@dataclass(frozen=True)
class _Merged:
    """A value of the target and its sequence, in the MERGE. `is_newer`: the events set it. `is_gone`: a later delete takes it."""

    leaf: Leaf
    i: int
    stored: str

    @property
    def known(self) -> str:
        of_row = f"t.{self.stored}"
        return f"if(t.{quote(SEQUENCES)} IS NULL, {of_row}, t.{quote(SEQUENCES)}[{self.leaf.name}])"

    @property
    def old(self) -> str:
        return f"CAST(NULL AS {ddl(self.leaf.type)})" if self.leaf.is_missing else self.leaf.of("t")

    @property
    def is_newer(self) -> str:
        new = f"s.{_sequence(self.i)}"
        return f"({new} IS NOT NULL AND ({self.known} IS NULL OR {new} > {self.known}))"

    @property
    def is_gone(self) -> str:
        return f"(s.{_GONE} IS NOT NULL AND ({self.known} IS NULL OR {self.known} <= s.{_GONE}))"

    @property
    def value(self) -> str:
        return f"if({self.is_newer}, s.{_value(self.i)}, if({self.is_gone}, NULL, {self.old}))"

    @property
    def sequence(self) -> str:
        return f"if({self.is_newer}, s.{_sequence(self.i)}, if({self.is_gone}, NULL, {self.known}))"

    @property
    def differs(self) -> str:
        """Returns whether the events have another value with the sequence that the target's value has."""
        new, old = (comparable(v, self.leaf.type) for v in (f"s.{_value(self.i)}", self.old))
        return f"(s.{_sequence(self.i)} = {self.known} AND NOT {self.is_gone} AND NOT ({new} <=> {old}))"


def merge(target: str, columns: Columns, order: Order, rows: str, evolution: str, stored: str, adds: bool) -> str:
    """Returns the MERGE. Arguments: those of `copy.merge`."""
    leaves = leaves_of(columns.kept_nulls, columns.missing)
    merged = [_Merged(leaf, i, stored) for i, leaf in enumerate(leaves)]
    is_later = f"(s.{SEQ} IS NOT NULL AND (t.{stored} IS NULL OR s.{SEQ} > t.{stored}))"
    is_row = f"s.{OP} = '{ROW}'"
    changes = [is_later, *(m.is_newer for m in merged), *(f"({m.is_gone} AND {m.old} IS NOT NULL)" for m in merged)]
    clauses = [
        f"WHEN MATCHED AND {is_row} AND s.{SEQ} IS NULL AND (t.{stored} IS NULL OR t.{stored} <= s.{_GONE}) THEN DELETE"
    ]
    conflict = [m.differs for m in merged]
    whole = [c for c in _whole(columns) if c not in columns.missing]
    if whole:
        own, other = (together([(f"{t}.{c.sql}", c.type) for c in whole]) for t in ("s", "t"))
        conflict.append(f"(s.{SEQ} = t.{stored} AND NOT ({own} <=> {other}))")
    fails = (
        f"{quote(SEQUENCES)} = if({raised(columns, order, 's')} IS NULL, t.{quote(SEQUENCES)}, t.{quote(SEQUENCES)})"
    )
    clauses.append(f"WHEN MATCHED AND {is_row} AND ({' OR '.join(conflict)}) THEN UPDATE SET {fails}")
    values = {m.leaf.path: m.value for m in merged}
    sets = [
        f"{c.sql} = if({is_later}, s.{c.sql}, t.{c.sql})" if c not in columns.missing else f"{c.sql} = s.{c.sql}"
        for c in _whole(columns)
    ]
    sets += [f"{c.sql} = {of_leaves((c.name,), c.type, values)}" for c in columns.kept_nulls]
    sets += [f"{stored} = greatest(s.{SEQ}, t.{stored})"] if adds else []
    sets.append(f"{quote(SEQUENCES)} = {_map([(m.leaf, m.sequence) for m in merged])}")
    clauses.append(f"WHEN MATCHED AND {is_row} AND ({' OR '.join(changes)}) THEN UPDATE SET {', '.join(sets)}")
    fresh = {m.leaf.path: f"s.{_value(m.i)}" for m in merged}
    inserted = [(c.sql, f"s.{c.sql}") for c in (*columns.keys, *_whole(columns))]
    inserted += [(c.sql, of_leaves((c.name,), c.type, fresh)) for c in columns.kept_nulls]
    inserted += [(stored, f"s.{SEQ}")] if adds else []
    inserted.append((quote(SEQUENCES), _map([(m.leaf, f"s.{_sequence(m.i)}") for m in merged])))
    names, new = (", ".join(part) for part in zip(*inserted, strict=True))
    clauses.append(f"WHEN NOT MATCHED AND {is_row} AND s.{SEQ} IS NOT NULL THEN INSERT ({names}) VALUES ({new})")
    return f"MERGE {evolution}INTO {target} AS t USING {rows} AS s ON {same_key(columns, 't', 's')} " + " ".join(
        clauses
    )


def _map(sequences: list[tuple[Leaf, str]]) -> str:
    names, values = (", ".join(part) for part in zip(*((leaf.name, one) for leaf, one in sequences), strict=True))
    return f"map_filter(map_from_arrays(array({names}), array({values})), (k, v) -> v IS NOT NULL)"
