"""The MERGE that a statement is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import DataType, StructType

from streamql.errors import StreamqlError
from streamql.features.autocdc.language.statement import AutoCdc
from streamql.features.autocdc.plan import assumed, copy, history, partial, snapshot
from streamql.features.autocdc.plan.columns import (
    END_AT,
    SEQUENCE,
    SEQUENCES,
    START_AT,
    Column,
    Columns,
    Tables,
    resolve,
)
from streamql.features.autocdc.plan.events import DELETES, EVENTS, SEQ, TRUNCATES, events, order_of
from streamql.features.autocdc.plan.values import ddl
from streamql.names import quote, quote_if_needed

ROWS = "`__cdc_rows`"


@dataclass(frozen=True)
class Merge:
    """The MERGE of a statement, in three parts: the query of the events, that of the rows to merge, which reads EVENTS, and the MERGE
    itself, which reads ROWS.

    `state`: the columns of what the target's state remembers, as DDL; empty: there is no state. `adds`: columns that the target needs and
    does not have, as (name, DDL of the type). `compares`: whether the events depend on the rows of the target; `reads_target`: whether the
    rows to merge do.
    """

    events: str
    rows: str
    merge: str
    state: str
    adds: tuple[tuple[str, str], ...]
    compares: bool
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
    taken = (
        snapshot.events(statement, columns, order, target)
        if order.is_snapshot
        else events(statement, columns, tables, order)
    )
    truncates = statement.truncate_when is not None
    evolution = "WITH SCHEMA EVOLUTION " if statement.evolves else ""
    sequence = "" if sequence_type is None else ddl(sequence_type)
    if statement.history == 2:
        rows = history.rows(columns, order, EVENTS, target)
        assumes = order.sequence is None and not order.is_snapshot and assumed.is_possible(columns)
        if assumes:
            rows = assumed.either(columns, rows, EVENTS)
        merge = history.merge(target, columns, ROWS, evolution, assumes=assumes)
        needed = [(START_AT, sequence), (END_AT, sequence)]
    elif order.sequence is None:
        rows = copy.rows(columns, order, EVENTS, target, truncates=truncates)
        merge, needed = copy.merge(target, columns, ROWS, evolution, None, adds=False), []
    else:
        kept = _kept_sequence(order.sequence, columns, tables)
        stored, adds = quote(SEQUENCE) if kept is None else kept.sql, kept is None
        columns = replace(columns, kept_nulls=tuple(c for c in columns.kept_nulls if c != kept))
        form = partial if columns.kept_nulls else copy
        rows = form.rows(columns, order, EVENTS, target, truncates=truncates)
        merge = (
            partial.merge(target, columns, order, ROWS, evolution, stored, adds=adds)
            if columns.kept_nulls
            else copy.merge(target, columns, ROWS, evolution, stored, adds=adds)
        )
        needed = [(SEQUENCE, sequence)] if adds else []
        needed += [(SEQUENCES, f"map<string, {sequence}>")] if columns.kept_nulls else []
    state = ""
    if order.sequence is not None:
        fields = columns.keys if statement.history == 1 else columns.all
        state = ", ".join(f"{c.sql} {ddl(c.type)}" for c in fields) + f", {SEQ} {sequence}, {DELETES} boolean"
        state += f", {TRUNCATES} boolean" if statement.history == 1 else ""
    return Merge(
        taken,
        rows,
        merge,
        state,
        _missing(statement, tables, needed),
        order.is_snapshot,
        statement.history == 2 or truncates,
    )


def _kept_sequence(sequence: str, columns: Columns, tables: Tables) -> Column | None:
    """Returns the column of the target that keeps the sequence: the one that SEQUENCE BY names, if the target has it with its values."""
    name = sequence.strip().strip("`")
    found = next((c for c in columns.all if tables.key(c.source) == tables.key(name)), None)
    return found if found is not None and found.type == found.source_type else None


def _missing(statement: AutoCdc, tables: Tables, needed: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
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
