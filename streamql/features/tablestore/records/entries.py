"""Entries: what each commit did to keys. `record_rows.py` makes records of them.

A row change becomes one *entry* for each key that it touches: a row *went* from the key, *stayed* at it with other values, or *came* to
it. Entries have the values of the table's columns; their texts are made later, of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from streamql.changes import schema
from streamql.changes.commit_rows import AFTER, BEFORE, CHANGED, RunChanges
from streamql.changes.key_ranges import range_sql
from streamql.delta.images import select
from streamql.delta.log import Json
from streamql.delta.uses import SIGN, SLICE, TIME, VERSION
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.expressions import padded_sql
from streamql.features.tablestore.formats.keys import bucket_sql
from streamql.features.tablestore.formats.values import text_sql
from streamql.features.tablestore.jobs.shards import COUNT_MAX, Generation, Shard
from streamql.features.tablestore.records.files import EntryColumns, numbered
from streamql.names import quote
from streamql.shared import constants

SHARD = "__streamql_shard"
ROW = "__streamql_record"
KIND = "__streamql_entry"
OPS = "__streamql_ops"
RECORD_COLUMNS = (VERSION, TIME, SLICE, SHARD, ROW, KIND)
"""Columns of record rows: the number of the shard (SHARD_SQL makes its id of it), the record's number in commit and shard, what
happened to the key (WENT, STAYED or CAME), and the record's tuples: an array of structs `op`, `column`, `value`, in their order."""

WENT, STAYED, CAME = 0, 1, 2
_BUCKETS = 10_000
"""A shard's number is that of its generation, times this, and its bucket."""
assert COUNT_MAX < _BUCKETS

SHARD_SQL = f"concat({padded_sql(f'{SHARD} DIV {_BUCKETS}', 4)}, '-', {padded_sql(f'{SHARD} % {_BUCKETS}', 4)})"
"""The id of a record row's shard."""

_PRESENT = constants("internals")["present"]
_DELETE_ROW = "named_struct('op', 'DR', 'column', CAST(NULL AS STRING), 'value', CAST(NULL AS STRING))"


def shard_number(shard: Shard) -> int:
    """Returns the number of a shard in record rows."""
    return shard.generation * _BUCKETS + shard.bucket


def key_column(index: int) -> str:
    """Returns the name of a key column in record rows."""
    return f"__streamql_key_{index}"


@dataclass(frozen=True)
class Key:
    """The key of records: names of its columns, and their types as Spark's JSON schema has them."""

    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """Returns the names of its columns in record rows."""
        return [key_column(i) for i in range(len(self.names))]


def sql_type(data_type: str) -> str:
    """Returns the SQL type of a key column, by its type in Spark's JSON schema."""
    return {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}.get(
        data_type, "TIMESTAMP_LTZ" if data_type == "timestamp" else data_type.upper()
    )


def key_fields(generation: Generation, metadata: Json, table: str) -> list[Json]:
    """Returns the columns of a generation's key in a schema. Raises INVALID_PROPERTY if one is missing."""
    by_name = {str(f["name"]).lower(): f for f in schema.fields(metadata)}
    missing = [name for name in generation.key if name.lower() not in by_name]
    if missing:
        raise StreamqlError(
            "INVALID_PROPERTY",
            f"the primary key of {table} has the column {missing[0]}, which the table has not at a version that is read",
            hint=f"ALTER TABLE {table} SET TBLPROPERTIES ('tablestore.primary_key' = '…'), and read the versions after that",
        )
    return [by_name[name.lower()] for name in generation.key]


@dataclass(frozen=True)
class Slices:
    """The slices of a run, whose numbers are `first` to `last`. `added`: is added to the slice that a row shows. `bounds`: by version, the
    bounds between the ranges of keys into which the commit is divided; each range is a slice."""

    first: int
    last: int
    added: int
    bounds: Mapping[int, list[str]]


@dataclass(frozen=True)
class Entries:
    """The entries of a run. `rows`: VERSION, TIME, SLICE, SHARD, KIND, ROW, the key columns, the values of the other columns, and CHANGED
    if `is_mixed`: if rows may have stayed. `fields`: the other columns with their indexes in the table. Lazy."""

    rows: DataFrame
    fields: tuple[tuple[int, Json], ...]
    is_mixed: bool
    key: Key
    generation: Generation
    slices: Slices

    def records(self) -> DataFrame:
        """Returns the records: RECORD_COLUMNS, OPS and the key columns, sorted within tasks by shard, slice, version and key; one task has
        all of a shard and slice. Lazy; running it raises what `explained` explains."""
        return select(self.numbered(), [*RECORD_COLUMNS, f"{self.ops} AS {OPS}", *self.key.columns])

    def numbered(self, *, in_slice: bool = False) -> DataFrame:
        """Returns the records without OPS, but with all that the expression `ops` needs. `in_slice`: ROW counts the records of a slice.
        Else it counts those of the commit and shard, by a job if the commit has several slices. Lazy."""
        columns = EntryColumns((SHARD, SLICE, VERSION), self.key.columns, KIND, ROW, WENT, CAME)
        violations = (self._violation("a row"), self._violation("two rows"))
        return numbered(self.rows, columns, self._tasks(), violations, () if in_slice else self.slices.bounds)

    def _tasks(self) -> tuple[str, int]:
        """Returns the number of an entry's task as an SQL expression, and how many tasks there are."""
        slices, shards = self.slices.last - self.slices.first + 1, self.generation.count
        least = int(str(self.rows.sparkSession.conf.get("spark.sql.shuffle.partitions")))
        tasks = min(slices * shards, max(slices, least))
        return f"(({SLICE} - {self.slices.first}) * {shards} + {SHARD} % {_BUCKETS}) % {tasks}", tasks

    @property
    def ops(self) -> str:
        """Returns the SQL expression for OPS."""
        cells = (self._cell(_value_column(i), field, i) for i, field in self.fields)
        return f"{_PRESENT}({', '.join([f'IF({KIND} <> {STAYED}, {_DELETE_ROW}, NULL)', *cells])})"

    def _cell(self, value: str, field: Json, index: int) -> str:
        is_written = f"{KIND} = {CAME} AND {value} IS NOT NULL"
        op = "'U'"
        if self.is_mixed:
            is_written = f"IF({KIND} = {STAYED}, {CHANGED}[{index}], {is_written})"
            op = f"IF({value} IS NULL, 'DA', 'U')"
        name, text = quote_string(str(field["name"])), text_sql(value, field["type"])
        return f"IF({is_written}, named_struct('op', {op}, 'column', {name}, 'value', {text}), NULL)"

    def _violation(self, rows: str) -> str:
        """Raises PRIMARY_KEY_VIOLATED in a task. `explained` reads the text."""
        shown = ", ', ', ".join(
            f"{quote_string(f'{name} = ')}, coalesce({text_sql(column, data_type)}, 'NULL')"
            for name, data_type, column in zip(self.key.names, self.key.types, self.key.columns, strict=True)
        )
        hint = "correct the table, and read from the version after the correction; or declare another key"
        return (
            f"raise_error(concat('[PRIMARY_KEY_VIOLATED] version ', {VERSION}, ' has {rows} with the primary key (', {shown}, ')\\nHint: "
            f"{hint}'))"
        )


def _value_column(index: int) -> str:
    return f"__streamql_value_{index}"


def entries_of(run: RunChanges, generation: Generation, key: Key, table: str, slices: Slices) -> Entries:
    """Returns the entries of a run, which has row changes. Raises INVALID_PROPERTY."""
    own = [str(f["name"]) for f in key_fields(generation, run.metadata, table)]
    fields = tuple((i, f) for i, f in enumerate(schema.fields(run.metadata)) if f["name"] not in own)
    is_mixed = run.compared is not None

    def columns(prefix: str) -> list[str]:
        keys = [
            f"CAST({prefix}{quote(name)} AS {sql_type(data_type)}) AS {column}"
            for name, data_type, column in zip(own, key.types, key.columns, strict=True)
        ]
        return [*keys, *(f"{prefix}{quote(str(f['name']))} AS {_value_column(i)}" for i, f in fields)]

    parts = []
    if run.flat is not None:
        kind = f"IF({SIGN} < 0, {WENT}, {CAME}) AS {KIND}"
        changed = [f"CAST(NULL AS ARRAY<BOOLEAN>) AS {CHANGED}"] if is_mixed else []
        parts.append(select(run.flat, [VERSION, TIME, SLICE, kind, *columns(""), *changed]))
    if run.compared is not None:
        parts.append(_compared(run.compared, own, columns))
    rows = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    kept = [c for c in rows.columns if c not in (VERSION, TIME, SLICE)]
    return Entries(
        select(
            rows, [VERSION, TIME, _slice(key, slices), f"{_shard(generation, key)} AS {SHARD}", f"0 AS {ROW}", *kept]
        ),
        fields,
        is_mixed,
        key,
        generation,
        slices,
    )


def _compared(rows: DataFrame, own: list[str], columns: Callable[[str], list[str]]) -> DataFrame:
    """Entries of row changes whose images may both be there."""

    def struct(side: str, kind: int) -> str:
        return f"struct({', '.join([f'{kind} AS {KIND}', *columns(f'{side}.')])})"

    is_same = " AND ".join(f"{BEFORE}.{quote(n)} <=> {AFTER}.{quote(n)}" for n in own)
    stays = f"({BEFORE} IS NOT NULL AND {AFTER} IS NOT NULL AND {is_same})"
    went = f"IF({BEFORE} IS NULL OR {stays}, NULL, {struct(BEFORE, WENT)})"
    came = f"IF({AFTER} IS NULL, NULL, IF({stays}, {struct(AFTER, STAYED)}, {struct(AFTER, CAME)}))"
    exploded = select(rows, [VERSION, TIME, SLICE, CHANGED, f"explode({_PRESENT}({went}, {came})) AS entry"])
    names = [part.rpartition(" AS ")[2] for part in columns("")]
    return select(exploded, [VERSION, TIME, SLICE, *(f"entry.{name} AS {name}" for name in [KIND, *names]), CHANGED])


def _slice(key: Key, slices: Slices) -> str:
    own = range_sql(key.columns[0], VERSION, slices.bounds)
    return f"CAST({SLICE} + {slices.added} + {own} AS INT) AS {SLICE}"


def _shard(generation: Generation, key: Key) -> str:
    if generation.count == 1:
        return f"{generation.number * _BUCKETS}"
    bucket = bucket_sql(key.columns, generation.hashed_types, generation.count)
    return f"CAST({bucket} AS INT) + {generation.number * _BUCKETS}"
