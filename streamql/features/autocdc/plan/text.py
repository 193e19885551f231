"""The MERGE that a statement is."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import DataType, StructType

from streamql.errors import StreamqlError
from streamql.features.autocdc.language.statement import AutoCdc
from streamql.features.autocdc.plan import copy, history
from streamql.features.autocdc.plan.columns import END_AT, SEQUENCE, START_AT, Columns, Tables, resolve
from streamql.features.autocdc.plan.events import DELETES, EVENTS, SEQ, events, order_of
from streamql.features.autocdc.plan.values import ddl
from streamql.names import quote, quote_if_needed

ROWS = "`__cdc_rows`"


@dataclass(frozen=True)
class Merge:
    """The MERGE of a statement, in three parts: the query of the events, that of the rows to merge, which reads EVENTS, and the MERGE
    itself, which reads ROWS.

    `state`: the columns of what the target's state remembers, as DDL; empty: there is no state. `adds`: columns that the target needs and
    does not have, as (name, DDL of the type). `reads_target`: whether the rows depend on those of the target.
    """

    events: str
    rows: str
    merge: str
    state: str
    adds: tuple[tuple[str, str], ...]
    reads_target: bool

    @property
    def text(self) -> str:
        """Returns the whole MERGE."""
        source = f"(WITH {EVENTS} AS ({self.events}), {ROWS} AS ({self.rows}) SELECT * FROM {ROWS})"
        return self.merge.replace(f"USING {ROWS} AS s", f"USING {source} AS s", 1)


def merge_of(statement: AutoCdc, tables: Tables, sequence_type: DataType | None) -> Merge:
    """Returns the MERGE that the statement is. `sequence_type`: of SEQUENCE BY, or, in a history without it, of the times of commits; None:
    there is none. Raises AUTO_CDC_COLUMN, AUTO_CDC_ORDER."""
    columns, order = resolve(statement, tables), order_of(statement, tables)
    target = ".".join(map(quote, statement.target))
    taken = events(statement, columns, tables, order)
    evolution = "WITH SCHEMA EVOLUTION " if statement.evolves else ""
    sequence = "" if sequence_type is None else ddl(sequence_type)
    needed: tuple[tuple[str, str], ...] = ()
    if statement.history == 2:
        rows = history.rows(columns, order, EVENTS, target)
        merge = history.merge(target, columns, ROWS, evolution)
        needed = ((START_AT, sequence), (END_AT, sequence))
    else:
        rows = copy.rows(columns, order, EVENTS)
        kept = None if order.sequence is None else _kept_sequence(order.sequence, columns, tables)
        stored = None if order.sequence is None else kept or quote(SEQUENCE)
        merge = copy.merge(target, columns, ROWS, evolution, stored, stored is not None and kept is None)
        if stored is not None and kept is None:
            needed = ((SEQUENCE, sequence),)
    state = ""
    if order.sequence is not None:
        fields = columns.keys if statement.history == 1 else columns.all
        state = ", ".join(f"{c.sql} {ddl(c.type)}" for c in fields) + f", {SEQ} {sequence}, {DELETES} boolean"
    return Merge(taken, rows, merge, state, _missing(statement, tables, needed), statement.history == 2)


def _kept_sequence(sequence: str, columns: Columns, tables: Tables) -> str | None:
    """Returns the column of the target that keeps the sequence: the one that SEQUENCE BY names, if the target has it with its values."""
    name = sequence.strip().strip("`")
    found = next((c for c in columns.all if tables.key(c.source) == tables.key(name)), None)
    return found.sql if found is not None and found.type == found.source_type else None


def _missing(statement: AutoCdc, tables: Tables, needed: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Returns those of the needed columns that the target does not have. Raises AUTO_CDC_COLUMN if it has one of another type."""
    target = tables.target or StructType()
    for name, wanted in needed:
        known = tables.find(target, name)
        if known is not None and ddl(known.dataType) != wanted:
            raise StreamqlError(
                "AUTO_CDC_COLUMN",
                f"{name} of the target {'.'.join(map(quote_if_needed, statement.target))} is {ddl(known.dataType)}, "
                f"and the sequence is {wanted}",
                hint=f"give the column the type {wanted}, or cast the expression of SEQUENCE BY",
                column_name=name,
            )
    return tuple((name, wanted) for name, wanted in needed if tables.find(target, name) is None)
