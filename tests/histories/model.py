"""A plain-Python table: what each operation means for rows, with no Spark in it.

A row has a synthetic identity that lives as long as the row: updates and compaction keep it, RESTORE brings it back,
rewriting a table (INSERT OVERWRITE) makes new ones. `step` stands for the commit version until the history has run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

from .columns import COLUMN_TYPES, ColumnType

Values = Mapping[str, Hashable]


@dataclass(frozen=True)
class Column:
    """A column: `key` never changes and is never used again, `name` and kind may change."""

    key: str
    name: str
    type_name: str
    generated: str = ""  # the expression as SQL, or "identity"
    fixed: bool = False  # part of every table: k, p, n

    @property
    def type(self) -> ColumnType:
        return COLUMN_TYPES[self.type_name]

    @property
    def ddl(self) -> str:
        if self.generated == "identity":
            return f"{self.name} BIGINT GENERATED ALWAYS AS IDENTITY"
        generated = f" GENERATED ALWAYS AS ({self.generated})" if self.generated else ""
        return f"{self.name} {self.type.sql_type}{generated}"


@dataclass(frozen=True)
class ModelRow:
    """One row: the step that wrote this image, the step that inserted the row, and its values by column key."""

    step: int
    born: int
    values: Values


@dataclass(frozen=True)
class TableState:
    """A table as one step left it."""

    columns: tuple[Column, ...]
    rows: Mapping[int, ModelRow] = field(default_factory=dict)
    deletion_vectors: bool = True

    @property
    def writable(self) -> tuple[Column, ...]:
        """The columns a writer names."""
        return tuple(c for c in self.columns if not c.generated)

    def by_name(self, name: str) -> Column:
        return next(c for c in self.columns if c.name == name)

    @property
    def extra(self) -> tuple[Column, ...]:
        """The columns beyond k, p, n and generated ones: those that operations may set, rename, drop."""
        return tuple(c for c in self.columns if not c.fixed and not c.generated)


def complete(state: TableState, values: Mapping[str, Hashable]) -> Values:
    """Values with the generated columns worked out; identity columns stay unmodelled."""
    done = dict(values)
    for column in state.columns:
        if column.generated == "CAST(k % 10 AS INT)":
            k = done["k"]
            assert isinstance(k, int)
            done[column.key] = k % 10
        elif column.generated:
            done[column.key] = None
    return done


class RowIds:
    """Hands out synthetic row identities."""

    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        self._next += 1
        return self._next


def with_inserted(state: TableState, ids: RowIds, step: int, new_rows: list[Values]) -> TableState:
    """The table with rows added, each with a new identity."""
    rows = dict(state.rows)
    for values in new_rows:
        rows[ids.take()] = ModelRow(step, step, complete(state, values))
    return replace(state, rows=rows)


def without(state: TableState, doomed: Callable[[Values], bool]) -> TableState:
    """The table without the rows that a predicate holds for."""
    return replace(state, rows={i: r for i, r in state.rows.items() if not doomed(r.values)})


def updated(state: TableState, step: int, change: Callable[[Values], Values | None]) -> TableState:
    """The table with the rows rewritten for which `change` gives values; also where they are equal to the old ones."""
    rows = {}
    for row_id, row in state.rows.items():
        new = change(row.values)
        rows[row_id] = row if new is None else ModelRow(step, row.born, complete(state, new))
    return replace(state, rows=rows)


@dataclass(frozen=True)
class ModelChange:
    """A net change as the model sees it; `step` is that of the image shown."""

    change_type: str
    step: int
    values: Values


def model_changes(before: TableState, after: TableState) -> list[ModelChange]:
    """Net changes between two states of one history, in the columns of `after`."""
    keys = [c.key for c in after.columns if c.generated != "identity"]

    def shown(row: ModelRow) -> dict[str, Hashable]:
        return {key: row.values.get(key) for key in keys}

    changes = []
    for row_id in before.rows.keys() | after.rows.keys():
        old, new = before.rows.get(row_id), after.rows.get(row_id)
        if old is None and new is not None:
            changes.append(ModelChange("INSERT", new.step, shown(new)))
        elif old is not None and new is None:
            changes.append(ModelChange("DELETE", old.step, shown(old)))
        elif old is not None and new is not None and shown(old) != shown(new):
            changes.append(ModelChange("UPDATE_BEFORE", old.step, shown(old)))
            changes.append(ModelChange("UPDATE_AFTER", new.step, shown(new)))
    return changes


def model_appends(states: list[TableState], after: int, through: int) -> list[ModelChange]:
    """Rows inserted by the steps after+1 … through, as first inserted, in the columns of the last state."""
    keys = [c.key for c in states[through].columns if c.generated != "identity"]
    appended = []
    for step in range(after + 1, through + 1):
        appended += [
            ModelChange("INSERT", step, {key: row.values.get(key) for key in keys})
            for row in states[step].rows.values()
            if row.born == row.step == step
        ]
    return appended
