"""Which column of the source goes into which column of the target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, StructField, StructType

from streamql.errors import StreamqlError
from streamql.features.autocdc.language.statement import AutoCdc, Selection
from streamql.misspelt import suggestion
from streamql.model import METADATA_COLUMNS
from streamql.names import quote, quote_if_needed

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = OF_STREAMS = METADATA_COLUMNS
"""What a stream shows before the columns of its source. They do not go into the target."""
START_AT, END_AT = "__START_AT", "__END_AT"
"""The columns of a history: from when, and until when, a row was as it is. An END_AT of NULL: it still is."""
SEQUENCE = "__SEQUENCE"
"""The column of a copy that keeps the sequence of a row's last event, if no other column does."""
SEQUENCES = "__SEQUENCES"
"""The column of a copy that keeps the sequence of each value, with IGNORE NULL UPDATES: a map by the names of the columns."""


@dataclass(frozen=True)
class Column:
    """A column that goes into the target. `source`, `source_type`: in the source. `name`, `type`: in the target."""

    source: str
    source_type: DataType
    name: str
    type: DataType

    @property
    def sql(self) -> str:
        """Returns its name in the target, quoted."""
        return quote(self.name)


@dataclass(frozen=True)
class Columns:
    """What a statement does with each column.

    `all`: in the order of the target's new rows. `tracked`: those whose changes begin a row of a history. `kept_nulls`: those of which a
    NULL in an event leaves the target's value (IGNORE NULL UPDATES). `missing`: those that the target does not have yet.
    """

    all: tuple[Column, ...]
    keys: tuple[Column, ...]
    tracked: tuple[Column, ...] = ()
    kept_nulls: tuple[Column, ...] = ()
    missing: tuple[Column, ...] = ()

    @property
    def values(self) -> tuple[Column, ...]:
        """Returns those that are not keys."""
        return tuple(c for c in self.all if c not in self.keys)


@dataclass(frozen=True)
class Tables:
    """The columns of the source and of the target, and whether the session tells the case of names apart. `target` None: there is none."""

    source: StructType
    target: StructType | None
    is_case_sensitive: bool = False

    def find(self, columns: Iterable[StructField], name: str) -> StructField | None:
        """Returns the column of a name. None: there is none."""
        return next((f for f in columns if self.key(f.name) == self.key(name)), None)

    def key(self, name: str) -> str:
        """Returns what two spellings of a name share."""
        return name if self.is_case_sensitive else name.lower()

    def has(self, *names: str) -> bool:
        """Returns whether the source has columns of all these names."""
        return all(self.find(self.source, name) is not None for name in names)


def resolve(statement: AutoCdc, tables: Tables) -> Columns:
    """Returns what the statement does with each column. Raises AUTO_CDC_COLUMN."""
    offered = [f for f in tables.source if tables.key(f.name) not in {tables.key(n) for n in OF_STREAMS}]
    _refuse_reserved(statement, tables, offered)
    wanted = _selected(tables, statement.columns, offered, "COLUMNS")
    made: list[Column] = []
    missing: list[Column] = []
    for field in wanted:
        known = None if tables.target is None else tables.find(tables.target, field.name)
        one = Column(field.name, field.dataType, field.name if known is None else known.name, (known or field).dataType)
        made.append(one)
        if tables.target is not None and known is None:
            missing.append(one)
    keys = [_key(tables, made, wanted, key) for key in statement.keys]
    if missing and (not statement.evolves or any(c in keys for c in missing)):
        raise _missing(statement, tables, missing)
    values = [c for c in made if c not in keys]
    return Columns(
        tuple(made),
        tuple(keys),
        tuple(_among(tables, statement.tracked or Selection((), True), values, "TRACK HISTORY ON")),
        tuple(_among(tables, statement.ignored_nulls, values, "IGNORE NULL UPDATES ON")),
        tuple(missing),
    )


def _selected(
    tables: Tables, selection: Selection | None, offered: Sequence[StructField], clause: str
) -> list[StructField]:
    """Returns the columns that a clause takes, in their own order."""
    if selection is None:
        return list(offered)
    named = {tables.key(_find(tables, offered, name, clause).name) for name in selection.names}
    return [f for f in offered if (tables.key(f.name) in named) != selection.is_except]


def _among(tables: Tables, selection: Selection | None, columns: Sequence[Column], clause: str) -> list[Column]:
    if selection is None:
        return []
    fields = [StructField(c.source, c.type) for c in columns]
    taken = {f.name for f in _selected(tables, selection, fields, clause)}
    return [c for c in columns if c.source in taken]


def _key(tables: Tables, made: Sequence[Column], wanted: Sequence[StructField], key: str) -> Column:
    name = _find(tables, wanted, key, "KEYS").name
    return next(c for c in made if c.source == name)


def _find(tables: Tables, columns: Sequence[StructField], name: str, clause: str) -> StructField:
    found = tables.find(columns, name)
    if found is not None:
        return found
    names = [f.name for f in columns]
    have = ", ".join(map(quote_if_needed, names)) or "none"
    raise StreamqlError(
        "AUTO_CDC_COLUMN",
        f"{clause} names the column {quote_if_needed(name)}, which the source does not give: it gives {have}",
        hint=suggestion(name, names) or f"name a column of the source in {clause}",
        column_name=name,
    )


def _refuse_reserved(statement: AutoCdc, tables: Tables, offered: Sequence[StructField]) -> None:
    reserved = (START_AT, END_AT) if statement.history == 2 else (SEQUENCE, SEQUENCES)
    for name in reserved:
        if tables.find(offered, name) is not None:
            raise StreamqlError(
                "AUTO_CDC_COLUMN",
                f"the source has a column {name}, which AUTO CDC INTO fills in the target",
                hint=f"leave it out: COLUMNS * EXCEPT ({name})",
                column_name=name,
            )


def _missing(statement: AutoCdc, tables: Tables, missing: Sequence[Column]) -> StreamqlError:
    names = ", ".join(quote_if_needed(c.source) for c in missing)
    target = ".".join(map(quote_if_needed, statement.target))
    assert tables.target is not None
    near = suggestion(missing[0].source, [f.name for f in tables.target])
    hint = f"COLUMNS * EXCEPT ({names}) leaves out what the target does not have, AUTO CDC WITH SCHEMA EVOLUTION INTO adds it"
    return StreamqlError(
        "AUTO_CDC_COLUMN",
        f"the target {target} has no column{'s' if len(missing) > 1 else ''} {names}",
        hint=f"{near}; {hint}" if near else hint,
        column_name=missing[0].source,
    )
