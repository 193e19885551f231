"""Records and 6-tuples as lazy DataFrames, made of the row changes of each commit. `streamql.tablestore.records` defines what they are.

A row change becomes one *entry* for each key that it touches: a row *went* from the key, *stayed* at it with other values, or *came* to
it. Entries are divided by shard and slice, and sorted by version and key. So the entries of a key in a commit are neighbours, which tell
what its record is, and a running count numbers the records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.changes import schema
from streamql.changes.commit_rows import AFTER, BEFORE, CHANGED, History, RunChanges, changes_by_commit
from streamql.delta.images import select
from streamql.delta.log import Json
from streamql.delta.uses import SLICE, TIME, VERSION
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.names import quote
from streamql.tablestore.expressions import sequence_sql
from streamql.tablestore.keys import bucket_sql
from streamql.tablestore.records import SEQUENCE_COLUMN, tuple_columns
from streamql.tablestore.shards import COUNT_MAX, Generation, Shard, ShardTree
from streamql.tablestore.values import DataType, text_sql

SHARD = "__streamql_shard"
ROW = "__streamql_record"
KIND = "__streamql_entry"
CELLS = "__streamql_cells"
"""Columns of record rows: the number of the shard (SHARD_SQL makes its id of it), the record's number in commit and shard, what
happened to the key (WENT, STAYED or CAME), and an array of structs `column`, `value` (NULL: the column became NULL)."""

WENT, STAYED, CAME = 0, 1, 2
_BUCKETS = 10_000
"""A shard's number is that of its generation, times this, and its bucket."""
assert COUNT_MAX < _BUCKETS

SHARD_SQL = f"format_string('%04d-%04d', CAST({SHARD} / {_BUCKETS} AS INT), {SHARD} % {_BUCKETS})"
"""The id of a record row's shard."""

TYPE_SQL = f"element_at(array('DELETE', 'UPDATE', 'PUT'), {KIND} + 1)"
"""The type of a record."""

_PREVIOUS, _NEXT, _IS_RECORD = "__streamql_previous", "__streamql_next", "__streamql_is_record"
_ENTRY_COLUMNS = (VERSION, TIME, SLICE, SHARD)
_NO_CELLS = "CAST(array() AS ARRAY<STRUCT<column: STRING, value: STRING>>)"
_VIOLATED = re.compile(r"\[PRIMARY_KEY_VIOLATED\] ([^\n]*)\nHint: ([^\n]*)")


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
        """The names of its columns in record rows."""
        return [key_column(i) for i in range(len(self.names))]


@dataclass(frozen=True)
class Records:
    """Records of some commits. `rows`: VERSION, TIME, SLICE, SHARD, ROW, KIND, CELLS and the key columns, sorted within tasks by shard,
    slice, version and key; one task has all of a shard and slice. None: the commits changed no rows. Lazy; running it raises what
    `explained` explains."""

    spark: SparkSession
    table: str
    key: Key
    rows: DataFrame | None


def records_of_commits(
    spark: SparkSession,
    history: History,
    tree: ShardTree,
    table: str,
    slice_of: Mapping[int, int] | None = None,
) -> Records:
    """Returns the records of consecutive commits. Lazy.

    `tree`: the shards of the table's stream. `table`: its name as SQL takes it, for messages. `slice_of`: by version, numbers that grow
    with it. None: all are in slice 0. Raises INVALID_PROPERTY if the commits have two keys, or a column of the key is missing; and what
    `changes_by_commit` raises.
    """
    first, last = history.commits[0].version, history.commits[-1].version
    cuts = [generation.first for generation in tree.generations]
    runs = list(changes_by_commit(spark, history, cuts=cuts, slice_of=slice_of))
    generations = [tree.generation_at(run.first) for run in runs] or [tree.ranges(first, last)[-1][0]]
    _check_one_key(generations, table)
    end = runs[-1].metadata if runs else history.epochs[-1].metadata
    key = _key(generations[-1], end, table)
    parts: DataFrame | None = None
    for run, generation in zip(runs, generations, strict=False):
        for rows in _entries(run, generation, key, table):
            parts = rows if parts is None else parts.union(rows)
    return Records(spark, table, key, None if parts is None else _numbered(parts, key))


def no_records(spark: SparkSession, generation: Generation, metadata: Json, table: str) -> Records:
    """Returns the records of no commits, with the key that a generation has in a schema. Raises INVALID_PROPERTY."""
    return Records(spark, table, _key(generation, metadata, table), None)


def _check_one_key(generations: Sequence[Generation], table: str) -> None:
    for earlier, later in pairwise(generations):
        if [n.lower() for n in earlier.key] != [n.lower() for n in later.key]:
            raise StreamqlError(
                "INVALID_PROPERTY",
                f"the primary key of {table} is ({', '.join(later.key)}) from version {later.first} on, and was "
                f"({', '.join(earlier.key)}) before: records of both do not fit into one table",
                hint=f"read the versions before {later.first} and those after by themselves",
                version=later.first,
            )


def _key(generation: Generation, metadata: Json, table: str) -> Key:
    fields = _key_fields(generation, metadata, table)
    return Key(tuple(str(f["name"]) for f in fields), tuple(str(f["type"]) for f in fields))


def _key_fields(generation: Generation, metadata: Json, table: str) -> list[Json]:
    """The columns of a generation's key in a schema."""
    by_name = {str(f["name"]).lower(): f for f in schema.fields(metadata)}
    missing = [name for name in generation.key if name.lower() not in by_name]
    if missing:
        raise StreamqlError(
            "INVALID_PROPERTY",
            f"the primary key of {table} has the column {missing[0]}, which the table has not at a version that is read",
            hint=f"ALTER TABLE {table} SET TBLPROPERTIES ('tablestore.primary_key' = '…'), and read the versions after that",
        )
    return [by_name[name.lower()] for name in generation.key]


def _entries(run: RunChanges, generation: Generation, key: Key, table: str) -> list[DataFrame]:
    """The entries of a run, in _ENTRY_COLUMNS, then KIND, CELLS and the key."""
    own = [str(f["name"]) for f in _key_fields(generation, run.metadata, table)]
    fields = [(i, f) for i, f in enumerate(schema.fields(run.metadata)) if f["name"] not in own]
    shard = _shard(generation, key)

    def keys(side: str) -> list[str]:
        return [
            f"CAST({side}.{quote(name)} AS {_sql_type(data_type)}) AS {column}"
            for name, data_type, column in zip(own, key.types, key.columns, strict=True)
        ]

    def struct(side: str, kind: str, cells: str) -> str:
        return f"struct({', '.join([f'{kind} AS {KIND}', f'{cells} AS {CELLS}', *keys(side)])})"

    put = _filtered([_cell(AFTER, f) for _, f in fields])
    changed = _filtered([f"IF({CHANGED}[{i}], {_cell(AFTER, f)}, NULL)" for i, f in fields], keeps_nulls=True)
    found = []
    if run.apart is not None:
        entry = f"IF({AFTER} IS NULL, {struct(BEFORE, f'{WENT}', _NO_CELLS)}, {struct(AFTER, f'{CAME}', put)})"
        found.append(_spread(select(run.apart, [VERSION, TIME, SLICE, f"{entry} AS entry"]), key, shard))
    if run.compared is not None:
        is_same = " AND ".join(f"{BEFORE}.{quote(n)} <=> {AFTER}.{quote(n)}" for n in own)
        stays = f"({BEFORE} IS NOT NULL AND {AFTER} IS NOT NULL AND {is_same})"
        went = f"IF({BEFORE} IS NULL OR {stays}, NULL, {struct(BEFORE, f'{WENT}', _NO_CELLS)})"
        stayed = struct(AFTER, f"{STAYED}", changed)
        came = f"IF({AFTER} IS NULL, NULL, IF({stays}, {stayed}, {struct(AFTER, f'{CAME}', put)}))"
        entries = f"explode(filter(array({went}, {came}), x -> x IS NOT NULL)) AS entry"
        found.append(_spread(select(run.compared, [VERSION, TIME, SLICE, entries]), key, shard))
    return found


def _spread(rows: DataFrame, key: Key, shard: str) -> DataFrame:
    columns = [f"entry.{c} AS {c}" for c in (KIND, CELLS, *key.columns)]
    spread = select(rows, [VERSION, TIME, SLICE, *columns])
    return select(spread, [VERSION, TIME, SLICE, f"{shard} AS {SHARD}", KIND, CELLS, *key.columns])


def _shard(generation: Generation, key: Key) -> str:
    bucket = bucket_sql(key.columns, generation.hashed_types, generation.count)
    return f"CAST({bucket} AS INT) + {generation.number * _BUCKETS}"


def _sql_type(data_type: str) -> str:
    return {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}.get(
        data_type, "TIMESTAMP_LTZ" if data_type == "timestamp" else data_type.upper()
    )


def _cell(side: str, field: Json) -> str:
    data_type: DataType = field["type"]
    value = text_sql(f"{side}.{quote(str(field['name']))}", data_type)
    return f"named_struct('column', {quote_string(str(field['name']))}, 'value', {value})"


def _filtered(cells: Sequence[str], *, keeps_nulls: bool = False) -> str:
    if not cells:
        return _NO_CELLS
    kept = "x IS NOT NULL" if keeps_nulls else "x.value IS NOT NULL"
    return f"filter(array({', '.join(cells)}), x -> {kept})"


def _numbered(entries: DataFrame, key: Key) -> DataFrame:
    """Records, each with its number in commit and shard."""
    own = [*_ENTRY_COLUMNS, KIND, CELLS, *key.columns]
    divided = entries.repartition(F.col(SHARD), F.col(SLICE))
    order = f"PARTITION BY {SHARD}, {SLICE}, {VERSION} ORDER BY {', '.join(key.columns)}, {KIND}"
    entry = f"struct({', '.join([KIND, *key.columns])})"
    neighbours = select(
        divided, [*own, f"lag({entry}) OVER ({order}) AS {_PREVIOUS}", f"lead({entry}) OVER ({order}) AS {_NEXT}"]
    )

    def is_of_key(neighbour: str) -> str:
        return " AND ".join([f"{neighbour} IS NOT NULL", *(f"{neighbour}.{c} <=> {c}" for c in key.columns)])

    has_null = " OR ".join(f"{c} IS NULL" for c in key.columns)
    is_second = f"{is_of_key(_PREVIOUS)} AND NOT ({_PREVIOUS}.{KIND} = {WENT} AND {KIND} = {CAME})"
    is_replaced = f"{KIND} = {WENT} AND {is_of_key(_NEXT)}"
    is_record = (
        f"CASE WHEN {has_null} THEN {_violation('a row', key)} WHEN {is_second} THEN {_violation('two rows', key)} "
        f"WHEN {is_replaced} OR ({KIND} = {STAYED} AND size({CELLS}) = 0) THEN false ELSE true END"
    )
    told = select(neighbours, [*own, f"{is_record} AS {_IS_RECORD}"])
    count = f"sum(IF({_IS_RECORD}, 1, 0)) OVER ({order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    numbered = select(told, [*own, _IS_RECORD, f"{count} - 1 AS {ROW}"])
    kept = numbered.where(F.col(_IS_RECORD))
    return kept.select(*_ENTRY_COLUMNS, ROW, KIND, CELLS, *key.columns)


def _violation(rows: str, key: Key) -> str:
    """Raises PRIMARY_KEY_VIOLATED in a task. `explained` reads the text."""
    shown = ", ', ', ".join(
        f"{quote_string(f'{name} = ')}, coalesce({text_sql(column, data_type)}, 'NULL')"
        for name, data_type, column in zip(key.names, key.types, key.columns, strict=True)
    )
    hint = "correct the table, and read from the version after the correction; or declare another key"
    return (
        f"CAST(raise_error(concat('[PRIMARY_KEY_VIOLATED] version ', {VERSION}, ' has {rows} with the primary key (', {shown}, ')\\nHint: "
        f"{hint}')) AS BOOLEAN)"
    )


def explained(error: BaseException) -> StreamqlError | None:
    """Returns PRIMARY_KEY_VIOLATED if that is what running the rows raised. None: it is something else."""
    found = _VIOLATED.search(str(error))
    if found is None:
        return None
    return StreamqlError("PRIMARY_KEY_VIOLATED", found.group(1), hint=found.group(2))


# -- 6-tuples

NUMBER = "__streamql_tuple"
_OPS = "__streamql_ops"


def ops_sql() -> str:
    """Returns the SQL expression for the tuples of a record: an array of structs `op`, `column`, `value`, in their order."""
    row = "array(named_struct('op', 'DR', 'column', CAST(NULL AS STRING), 'value', CAST(NULL AS STRING)))"
    cells = f"transform({CELLS}, x -> named_struct('op', IF(x.value IS NULL, 'DA', 'U'), 'column', x.column, 'value', x.value))"
    return f"IF({KIND} = {STAYED}, {cells}, concat({row}, {cells}))"


def counts_sql() -> dict[str, str]:
    """Returns aggregates over record rows: by opType, how many tuples there are."""
    written = f"size(filter({CELLS}, x -> x.value IS NOT NULL))"
    return {
        "U": f"CAST(sum({written}) AS BIGINT)",
        "DA": f"CAST(sum(size({CELLS}) - {written}) AS BIGINT)",
        "DR": f"count_if({KIND} <> {STAYED})",
    }


def tuples(records: Records, *, sequence_info: bool, places: bool = False) -> DataFrame | None:
    """Returns the 6-tuples: the key, columnName, timestamp, columnValue, opType, and sequenceInfo if asked for. None: there are none.

    `places`: SHARD, SLICE, VERSION, ROW and NUMBER come behind, which tell the order. Lazy. Raises RESERVED_COLUMN_NAME.
    """
    names = tuple_columns(records.key.names, sequence_info=sequence_info, table=records.table)
    if records.rows is None:
        return None
    key = records.key.columns
    exploded = select(records.rows, [*_ENTRY_COLUMNS, ROW, *key, f"posexplode({ops_sql()}) AS ({NUMBER}, {_OPS})"])
    values = [
        *key,
        f"{_OPS}.column",
        f"IF({_OPS}.op = 'U', {TIME}, NULL)",
        f"{_OPS}.value",
        f"{_OPS}.op",
        *(
            [sequence_sql(VERSION, TIME, f"CAST({ROW} AS BIGINT)", SHARD_SQL, f"CAST({NUMBER} AS BIGINT)")]
            if sequence_info
            else []
        ),
    ]
    assert not sequence_info or names[-1] == SEQUENCE_COLUMN
    shown = [f"{value} AS {quote(name)}" for value, name in zip(values, names, strict=True)]
    return select(exploded, [*shown, *([SHARD, SLICE, VERSION, ROW, NUMBER] if places else [])])


def columns_ddl(key: Key, *, sequence_info: bool) -> str:
    """Returns the columns of 6-tuples as DDL."""
    parts = [f"{quote(name)} {_sql_type(data_type)}" for name, data_type in zip(key.names, key.types, strict=True)]
    parts += ["columnName STRING", "timestamp BIGINT", "columnValue STRING", "opType STRING"]
    return ", ".join([*parts, *([f"{SEQUENCE_COLUMN} STRING"] if sequence_info else [])])
