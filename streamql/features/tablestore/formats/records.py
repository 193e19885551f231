"""Records and 6-tuples: what a commit did to each key, as TableStore and DataX say it. Pure.

A commit's changes become at most one record for each key:

| in the commit | record | tuples |
|---|---|---|
| a row of the key came, none went | PUT | DR, then U for each column that is not NULL |
| a row went and another one came | PUT | the same |
| the row of the key changed | UPDATE | U for each column that changed, DA for each column that became NULL |
| a row went, none came | DELETE | DR |

A row whose key changed is a row that went under its old key, and a row that came under its new one. An update that changed no value is no
record. DO, the deletion of one version of a column, does not occur: a column of a Delta table has one version.

This module is the definition. Spark computes the same from files, lazily; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.keys import key_text
from streamql.features.tablestore.formats.sequence import Position, SequenceInfo
from streamql.features.tablestore.formats.values import Value, text_of

Key = tuple[Value, ...]

TUPLE_COLUMNS = ("columnName", "timestamp", "columnValue", "opType")
SEQUENCE_COLUMN = "sequenceInfo"


class RecordType(Enum):
    """What a record does to the row of its key."""

    PUT = "PUT"  # replaces the row, or makes it
    UPDATE = "UPDATE"  # changes some columns
    DELETE = "DELETE"  # deletes the row


class OpType(Enum):
    """What a 6-tuple does. Source of the codes: DataX, otsstreamreader."""

    U = "U"  # writes a version of a column
    DO = "DO"  # deletes one version of a column; does not occur
    DA = "DA"  # deletes all versions of a column
    DR = "DR"  # deletes a row


@dataclass(frozen=True)
class Cell:
    """A column that a record writes, or deletes. `value`: its text. None: the column became NULL, and `op` is DA."""

    column: str
    value: str | None

    @property
    def op(self) -> OpType:
        """U or DA."""
        return OpType.DA if self.value is None else OpType.U


@dataclass(frozen=True)
class Record:
    """What a commit did to a key. `cells` are in the order of the table's columns; a DELETE has none. `time_ms`: when the commit was made,
    in milliseconds since 1970."""

    type: RecordType
    key: Key
    cells: tuple[Cell, ...]
    shard: str
    position: Position
    time_ms: int


@dataclass(frozen=True)
class Image:
    """A row as it is at a version: its key, and the values of its other columns by their names."""

    key: tuple[Value | None, ...]
    values: Mapping[str, Value | None]


@dataclass(frozen=True)
class RowChange:
    """A row, by its row id, before and after a commit. None: it did not exist."""

    before: Image | None
    after: Image | None


@dataclass(frozen=True)
class Commit:
    """The commit whose records are made. `shard_of`: the shard of a key. `key_names`: of the key's columns, for messages."""

    version: int
    time_ms: int
    key_names: Sequence[str]
    shard_of: Callable[[Key], str]


def records_of(changes: Iterable[RowChange], commit: Commit, text: Callable[[Value], str] = text_of) -> list[Record]:
    """Returns the records of a commit, by shard and key, each with its number among those of the shard.

    `text`: writes a value. Raises PRIMARY_KEY_VIOLATED if two rows have one key before or after the commit, or if a key has a NULL.
    """
    before: dict[Key, RowChange] = {}
    after: dict[Key, RowChange] = {}
    for change in changes:
        for image, by_key in ((change.before, before), (change.after, after)):
            if image is not None:
                key = _checked(image.key, commit)
                if key in by_key:
                    raise violated(commit.key_names, key, commit.version, "two rows")
                by_key[key] = change
    records: list[Record] = []
    rows: dict[str, int] = {}
    for shard, key in sorted(((commit.shard_of(k), k) for k in before | after), key=lambda p: (p[0], sort_key(p[1]))):
        found = _record_type(before.get(key), after.get(key), text)
        if found is not None:
            row = rows[shard] = rows.get(shard, -1) + 1
            records.append(Record(found[0], key, found[1], shard, Position(commit.version, row), commit.time_ms))
    return records


def _record_type(
    went: RowChange | None, came: RowChange | None, text: Callable[[Value], str]
) -> tuple[RecordType, tuple[Cell, ...]] | None:
    """Returns the type and the cells of a key's record. None: no value changed."""
    if came is None or came.after is None:
        return RecordType.DELETE, ()
    values = came.after.values
    if went is came and came.before is not None:
        old = came.before.values
        cells = tuple(_cell(c, v, text) for c, v in values.items() if not is_same(old.get(c), v))
        return (RecordType.UPDATE, cells) if cells else None
    return RecordType.PUT, tuple(_cell(c, v, text) for c, v in values.items() if v is not None)


def _cell(column: str, value: Value | None, text: Callable[[Value], str]) -> Cell:
    return Cell(column, None if value is None else text(value))


def is_same(one: Value | None, other: Value | None) -> bool:
    """Returns whether an update from one value to the other changes nothing: NULL is NULL, NaN is NaN, and -0.0 is 0.0."""
    return one == other or (one != one and other != other)


def _checked(key: tuple[Value | None, ...], commit: Commit) -> Key:
    known = tuple(value for value in key if value is not None)
    if len(known) < len(key):
        raise violated(commit.key_names, key, commit.version, "a row")
    return known


def violated(names: Sequence[str], key: Sequence[Value | None], version: int, rows: str) -> StreamqlError:
    """Returns the error for rows that break the primary key in a commit. `rows`: two rows, or a row."""
    shown = key_text(names, key)
    return StreamqlError(
        "PRIMARY_KEY_VIOLATED",
        f"version {version} has {rows} with the primary key {shown}",
        hint="correct the table, and read from the version after the correction; or declare another key",
        version=version,
        key=shown,
    )


def sort_key(key: Key) -> tuple[object, ...]:
    """Returns the order of keys in a commit and shard, as Spark sorts: strings by their bytes in UTF-8."""
    return tuple(value.encode("utf-8") if isinstance(value, str) else value for value in key)


TupleValue = Value | None


def tuples_of(record: Record, *, sequence_info: bool) -> list[tuple[TupleValue, ...]]:
    """Returns the tuples of a record: the key, columnName, timestamp, columnValue, opType, and sequenceInfo if asked for.

    U has the commit's time in milliseconds since 1970 as its timestamp; DR and DA have None.
    """
    ops: list[tuple[OpType, Cell | None]] = [(cell.op, cell) for cell in record.cells]
    if record.type is not RecordType.UPDATE:
        ops.insert(0, (OpType.DR, None))
    made = []
    for number, (op, cell) in enumerate(ops):
        name, value = (None, None) if cell is None else (cell.column, cell.value)
        row = (*record.key, name, record.time_ms if op is OpType.U else None, value, op.value)
        if sequence_info:
            info = SequenceInfo(record.position, record.time_ms * 1000, record.shard, number)
            row = (*row, str(info))
        made.append(row)
    return made


def tuple_columns(key_names: Sequence[str], *, sequence_info: bool, table: str) -> tuple[str, ...]:
    """Returns the names of the columns of tuples. Raises RESERVED_COLUMN_NAME if a key column is named like one of the others."""
    others = (*TUPLE_COLUMNS, *((SEQUENCE_COLUMN,) if sequence_info else ()))
    for name in key_names:
        if name.lower() in {other.lower() for other in others}:
            raise StreamqlError(
                "RESERVED_COLUMN_NAME",
                f"the key of {table} has a column {name}, which is the name of a column of 6-tuples",
                hint=f"ALTER TABLE {table} RENAME COLUMN {name} TO …, and name it so in 'tablestore.primary_key'",
                column_name=name,
            )
    return (*key_names, *others)
