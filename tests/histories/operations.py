"""The operations a history is made of: each says its SQL, and what it does to the plain-Python table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Protocol

from .model import Column, RowIds, TableState, Values, updated, with_inserted, without


@dataclass(frozen=True)
class Moment:
    """What an operation may look at while the model runs: its own step, identities, and the states before it."""

    step: int
    ids: RowIds
    states: tuple[TableState, ...]


class Operation(Protocol):
    """A statement on the table. `sql` takes the state before it and the table's name in SQL."""

    @property
    def label(self) -> str: ...

    def sql(self, state: TableState, table: str) -> list[str]: ...

    def apply(self, state: TableState, moment: Moment) -> TableState: ...


@dataclass(frozen=True)
class Where:
    """A predicate over k or p: rows with lo <= column < hi and column % modulus = remainder."""

    lo: int = 0
    hi: int = 1 << 40
    modulus: int = 1
    remainder: int = 0
    column: str = "k"

    def sql(self, alias: str = "") -> str:
        c = f"{alias}{self.column}"
        text = f"{c} >= {self.lo} AND {c} < {self.hi}"
        return text if self.modulus == 1 else f"{text} AND {c} % {self.modulus} = {self.remainder}"

    def holds(self, values: Values) -> bool:
        value = values[self.column]
        return isinstance(value, int) and self.lo <= value < self.hi and value % self.modulus == self.remainder


@dataclass(frozen=True)
class Source:
    """New rows: k = start, start + stride, …; p = k % 3 or one partition; the rest from their pools by k + salt."""

    start: int
    count: int
    salt: int
    files: int = 1
    stride: int = 1
    partition: int | None = None

    def keys(self) -> range:
        return range(self.start, self.start + self.count * self.stride, self.stride)

    def select(self, state: TableState) -> str:
        exprs = ", ".join(f"{self._sql(c)} AS {c.name}" for c in state.writable)
        spread = f"/*+ REPARTITION({self.files}) */ " if self.files > 1 else ""
        return f"SELECT {spread}{exprs} FROM range({self.start}, {self.keys().stop}, {self.stride}, {self.files})"

    def _sql(self, column: Column) -> str:
        if column.key == "k":
            return "CAST(id AS BIGINT)"
        if column.key == "p":
            return "CAST(id % 3 AS INT)" if self.partition is None else f"CAST({self.partition} AS INT)"
        if column.key == "n":
            return "CAST(0 AS BIGINT)"
        return column.type.sql_at(f"id + {self.salt + offset_of(column)}")

    def row(self, state: TableState, k: int) -> dict[str, Hashable]:
        values: dict[str, Hashable] = {"k": k, "p": k % 3 if self.partition is None else self.partition, "n": 0}
        for column in state.writable:
            if column.key not in values:
                values[column.key] = column.type.value(k + self.salt + offset_of(column))
        return values

    def rows(self, state: TableState) -> list[Values]:
        return [self.row(state, k) for k in self.keys()]


def offset_of(column: Column) -> int:
    """Keeps the columns of one row from walking their pools in step."""
    return sum(column.key.encode()) % 7


@dataclass(frozen=True)
class Assign:
    """SET clauses: `pick` sets a column from its pool, `same` writes v = v, `bump` adds to k, n; `partition` moves."""

    pick: tuple[tuple[str, int], ...] = ()
    same: tuple[str, ...] = ()
    bump: tuple[tuple[str, int], ...] = ()
    partition: int | None = None
    from_source: tuple[str, ...] = ()

    def sql(self, state: TableState, target: str = "") -> str:
        named = {c.key: c for c in state.columns}
        sets = [f"{target}{named[key].name} = {named[key].type.literal(index)}" for key, index in self.pick]
        sets += [f"{target}{named[key].name} = {target}{named[key].name}" for key in self.same]
        sets += [f"{target}{key} = {target}{key} + {amount}" for key, amount in self.bump]
        sets += [f"{target}{named[key].name} = s.{named[key].name}" for key in self.from_source]
        if self.partition is not None:
            sets.append(f"{target}p = {self.partition}")
        return ", ".join(sets)

    def values(self, state: TableState, old: Values, source: Values | None = None) -> Values:
        named = {c.key: c for c in state.columns}
        new = dict(old)
        for key, index in self.pick:
            new[key] = named[key].type.value(index)
        for key, amount in self.bump:
            value = new[key]
            assert isinstance(value, int)
            new[key] = value + amount
        for key in self.from_source:
            assert source is not None
            new[key] = source[key]
        if self.partition is not None:
            new["p"] = self.partition
        return new


@dataclass(frozen=True)
class Insert:
    source: Source
    label: str = "INSERT"

    def sql(self, state: TableState, table: str) -> list[str]:
        names = ", ".join(c.name for c in state.writable)
        return [f"INSERT INTO {table} ({names}) {self.source.select(state)}"]

    def apply(self, state: TableState, moment: Moment) -> TableState:
        return with_inserted(state, moment.ids, moment.step, self.source.rows(state))


@dataclass(frozen=True)
class Overwrite:
    """INSERT OVERWRITE of the whole table, or of what `where` selects (REPLACE WHERE)."""

    source: Source
    where: Where | None = None
    label: str = "INSERT OVERWRITE"

    def sql(self, state: TableState, table: str) -> list[str]:
        if self.where is not None:
            by = "" if state.writable == state.columns else "BY NAME "
            return [f"INSERT INTO {table} {by}REPLACE WHERE {self.where.sql()} {self.source.select(state)}"]
        names = ", ".join(c.name for c in state.writable)
        return [f"INSERT OVERWRITE {table} ({names}) {self.source.select(state)}"]

    def apply(self, state: TableState, moment: Moment) -> TableState:
        kept = without(state, (self.where or Where()).holds)
        return with_inserted(kept, moment.ids, moment.step, self.source.rows(state))


@dataclass(frozen=True)
class Update:
    where: Where
    assign: Assign
    label: str = "UPDATE"

    def sql(self, state: TableState, table: str) -> list[str]:
        return [f"UPDATE {table} SET {self.assign.sql(state)} WHERE {self.where.sql()}"]

    def apply(self, state: TableState, moment: Moment) -> TableState:
        def change(values: Values) -> Values | None:
            return self.assign.values(state, values) if self.where.holds(values) else None

        return updated(state, moment.step, change)


@dataclass(frozen=True)
class Delete:
    where: Where | None
    label: str = "DELETE"

    def sql(self, state: TableState, table: str) -> list[str]:
        return [f"DELETE FROM {table}" + (f" WHERE {self.where.sql()}" if self.where else "")]

    def apply(self, state: TableState, moment: Moment) -> TableState:
        return without(state, (self.where or Where()).holds)


@dataclass(frozen=True)
class Merge:
    """MERGE on k with any of its clauses; a clause left out is None, its condition is over k."""

    source: Source
    matched_delete: Where | None = None
    matched_update: Assign | None = None
    insert_where: Where | None = None
    unmatched_delete: Where | None = None
    unmatched_update: tuple[Where, Assign] | None = None
    label: str = "MERGE"

    def sql(self, state: TableState, table: str) -> list[str]:
        names = [c.name for c in state.writable]
        text = f"MERGE INTO {table} t USING ({self.source.select(state)}) s ON t.k = s.k"
        if self.matched_delete:
            text += f" WHEN MATCHED AND {self.matched_delete.sql('t.')} THEN DELETE"
        if self.matched_update:
            text += f" WHEN MATCHED THEN UPDATE SET {self.matched_update.sql(state, 't.')}"
        if self.insert_where:
            values = ", ".join(f"s.{n}" for n in names)
            text += f" WHEN NOT MATCHED AND {self.insert_where.sql('s.')} THEN INSERT"
            text += f" ({', '.join(names)}) VALUES ({values})"
        if self.unmatched_delete:
            text += f" WHEN NOT MATCHED BY SOURCE AND {self.unmatched_delete.sql('t.')} THEN DELETE"
        if self.unmatched_update:
            where, assign = self.unmatched_update
            text += f" WHEN NOT MATCHED BY SOURCE AND {where.sql('t.')} THEN UPDATE SET {assign.sql(state, 't.')}"
        return [text]

    def apply(self, state: TableState, moment: Moment) -> TableState:
        source = {k: self.source.row(state, k) for k in self.source.keys()}  # noqa: SIM118 - not a dict

        def doomed(values: Values) -> bool:
            clause = self.matched_delete if values["k"] in source else self.unmatched_delete
            return clause is not None and clause.holds(values)

        def change(values: Values) -> Values | None:
            matched = source.get(values["k"]) if isinstance(values["k"], int) else None
            if matched is not None:
                return self.matched_update.values(state, values, matched) if self.matched_update else None
            if self.unmatched_update and self.unmatched_update[0].holds(values):
                return self.unmatched_update[1].values(state, values)
            return None

        present = {row.values["k"] for row in state.rows.values()}
        new = [
            row for k, row in source.items() if k not in present and self.insert_where and self.insert_where.holds(row)
        ]
        return with_inserted(updated(without(state, doomed), moment.step, change), moment.ids, moment.step, list(new))


@dataclass(frozen=True)
class Restore:
    """RESTORE to the last version of an earlier step. The executor fills in `version`, which the log alone knows."""

    to_step: int
    version: int | None = None
    label: str = "RESTORE"

    def sql(self, state: TableState, table: str) -> list[str]:
        assert self.version is not None
        return [f"RESTORE TABLE {table} TO VERSION AS OF {self.version}"]

    def apply(self, state: TableState, moment: Moment) -> TableState:
        return moment.states[self.to_step]


@dataclass(frozen=True)
class Maintain:
    """OPTIMIZE, ZORDER, REORG, TRUNCATE …: `statement` has {table} in it; `empties` for those that take all rows."""

    statement: str
    label: str
    empties: bool = False
    deletion_vectors: bool | None = None

    def sql(self, state: TableState, table: str) -> list[str]:
        return [self.statement.format(table=table)]

    def apply(self, state: TableState, moment: Moment) -> TableState:
        after = replace(state, rows={}) if self.empties else state
        return after if self.deletion_vectors is None else replace(after, deletion_vectors=self.deletion_vectors)


@dataclass(frozen=True)
class Alter:
    """A schema change: ADD (column given), DROP, RENAME or WIDEN of the column with key `key`."""

    action: str
    key: str
    column: Column | None = None

    @property
    def label(self) -> str:
        return f"{self.action} COLUMN"

    def sql(self, state: TableState, table: str) -> list[str]:
        if self.action == "ADD":
            assert self.column is not None
            return [f"ALTER TABLE {table} ADD COLUMN {self.column.ddl}"]
        old = next(c for c in state.columns if c.key == self.key)
        if self.action == "DROP":
            return [f"ALTER TABLE {table} DROP COLUMN {old.name}"]
        assert self.column is not None
        if self.action == "RENAME":
            return [f"ALTER TABLE {table} RENAME COLUMN {old.name} TO {self.column.name}"]
        return [f"ALTER TABLE {table} ALTER COLUMN {old.name} TYPE {self.column.type.sql_type}"]

    def apply(self, state: TableState, moment: Moment) -> TableState:
        if self.action == "ADD":
            assert self.column is not None
            return replace(state, columns=(*state.columns, self.column))
        columns = [self.column if c.key == self.key else c for c in state.columns]
        return replace(state, columns=tuple(c for c in columns if c is not None))
