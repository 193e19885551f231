"""Records and 6-tuples as lazy DataFrames, made of the row changes of each commit. `formats/records.py` defines what they are.

The entries of a run (`entries.py`) are divided by shard and slice, and sorted by version and key. So the entries of a key in a
commit are neighbours. One pass over them makes the records, and numbers them. A large commit is divided into ranges of keys, each of which
is a slice (`key_ranges.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql import DataFrame, SparkSession

from streamql.changes import schema
from streamql.changes.commit_rows import History, RunChanges, changes_by_commit
from streamql.changes.key_ranges import bounds
from streamql.delta.images import select
from streamql.delta.log import Json
from streamql.delta.uses import SLICE, TIME, VERSION
from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.expressions import sequence_sql
from streamql.features.tablestore.formats.records import SEQUENCE_COLUMN, tuple_columns
from streamql.features.tablestore.jobs.shards import Generation, ShardTree
from streamql.features.tablestore.records.entries import (
    KIND,
    OPS,
    RECORD_COLUMNS,
    ROW,
    SHARD,
    SHARD_SQL,
    STAYED,
    Entries,
    Key,
    Slices,
    entries_of,
    key_fields,
    sql_type,
)
from streamql.names import quote

TYPE_SQL = f"element_at(array('DELETE', 'UPDATE', 'PUT'), {KIND} + 1)"
"""The type of a record."""

_VIOLATED = re.compile(r"\[PRIMARY_KEY_VIOLATED\] ([^\n]*)\nHint: ([^\n]*)")


@dataclass(frozen=True)
class Records:
    """Records of some commits, as the entries of runs. None are there if the commits changed no rows."""

    spark: SparkSession
    table: str
    key: Key
    runs: Sequence[Entries] = ()

    @property
    def rows(self) -> DataFrame | None:
        """Returns the records, as `Entries.records` has them. None: there are none."""
        return _union([run.records() for run in self.runs])


def records_of_commits(
    spark: SparkSession,
    history: History,
    tree: ShardTree,
    table: str,
    slice_of: Mapping[int, int] | None = None,
) -> Records:
    """Returns the records of consecutive commits. Lazy.

    `tree`: the shards of the table's stream. `table`: its name as SQL takes it, for messages. `slice_of`: by version, numbers that grow
    with it; records may show others, which grow likewise. None: all are in one slice, unless the commits have several schemas. Raises
    INVALID_PROPERTY if the commits have two keys, or a column of the key is missing; and what `changes_by_commit` raises.
    """
    first, last = history.commits[0].version, history.commits[-1].version
    cuts = [generation.first for generation in tree.generations]
    divided = {} if slice_of is None else _bounds(history, tree.ranges(first, last)[-1][0])
    numbers = _numbers(history, slice_of or {}, divided)
    runs = list(changes_by_commit(spark, history, cuts=cuts, slice_of=numbers))
    generations = [tree.generation_at(run.first) for run in runs] or [tree.ranges(first, last)[-1][0]]
    _check_one_key(generations, table)
    end = runs[-1].metadata if runs else history.epochs[-1].metadata
    key = _key(generations[-1], end, table)
    parts = [
        entries_of(run, generation, key, table, _slices(run, numbers, divided, i))
        for i, (run, generation) in enumerate(zip(runs, generations, strict=False))
    ]
    return Records(spark, table, key, parts)


def no_records(spark: SparkSession, generation: Generation, metadata: Json, table: str) -> Records:
    """Returns the records of no commits, with the key that a generation has in a schema. Raises INVALID_PROPERTY."""
    return Records(spark, table, _key(generation, metadata, table))


def _bounds(history: History, generation: Generation) -> dict[int, list[str]]:
    """Returns the bounds of the commits that are divided: none, if the key's column has another name at the end."""
    end = schema.fields(history.epochs[-1].metadata)
    field = next((f for f in end if str(f["name"]).lower() == generation.key[0].lower()), None)
    return {} if field is None else bounds(history.table, history.latest, history.commits, field, generation.count)


def _numbers(history: History, slice_of: Mapping[int, int], divided: Mapping[int, Sequence[str]]) -> dict[int, int]:
    """Returns the first slice of each version: a commit that is divided has one more for each bound."""
    found, added = {}, 0
    for commit in history.commits:
        found[commit.version] = slice_of.get(commit.version, 0) + added
        added += len(divided.get(commit.version, ()))
    return found


def _slices(run: RunChanges, numbers: Mapping[int, int], divided: Mapping[int, list[str]], index: int) -> Slices:
    """Returns the slices of a run. Each run begins with a slice of its own, since it has tasks of its own."""
    own = {version: values for version, values in divided.items() if run.first <= version <= run.last}
    return Slices(numbers[run.first] + index, numbers[run.last] + len(own.get(run.last, ())) + index, index, own)


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
    fields = key_fields(generation, metadata, table)
    return Key(tuple(str(f["name"]) for f in fields), tuple(str(f["type"]) for f in fields))


def _union(frames: Sequence[DataFrame]) -> DataFrame | None:
    found: DataFrame | None = None
    for frame in frames:
        found = frame if found is None else found.union(frame)
    return found


def explained(error: BaseException) -> StreamqlError | None:
    """Returns PRIMARY_KEY_VIOLATED if that is what running the rows raised. None: it is something else."""
    found = _VIOLATED.search(str(error))
    if found is None:
        return None
    return StreamqlError("PRIMARY_KEY_VIOLATED", found.group(1), hint=found.group(2))


# -- 6-tuples

NUMBER = "__streamql_tuple"
_OP = "__streamql_op"


def counts_sql() -> dict[str, str]:
    """Returns aggregates over record rows: by opType, how many tuples there are."""
    written, deleted = (f"size(filter({OPS}, x -> x.op = '{op}'))" for op in ("U", "DA"))
    return {
        "U": f"CAST(sum({written}) AS BIGINT)",
        "DA": f"CAST(sum({deleted}) AS BIGINT)",
        "DR": f"count_if({KIND} <> {STAYED})",
    }


def tuples(
    records: Records, *, sequence_info: bool, places: bool = False, rows: DataFrame | None = None
) -> DataFrame | None:
    """Returns the 6-tuples: the key, columnName, timestamp, columnValue, opType, and sequenceInfo if asked for. None: there are none.

    `places`: SHARD, SLICE, VERSION, ROW and NUMBER come behind, which tell the order; without `sequence_info`, ROW counts from 0 in each
    slice. `rows`: the rows of the records, if they were observed. Lazy. Raises RESERVED_COLUMN_NAME.
    """
    names = tuple_columns(records.key.names, sequence_info=sequence_info, table=records.table)
    parts = (
        [(run.numbered(in_slice=not sequence_info), run.ops) for run in records.runs] if rows is None else [(rows, OPS)]
    )
    exploded = [
        # Spark would evaluate a column twice, since it infers from `explode` that arrays which are empty can be filtered out before.
        select(part, [*RECORD_COLUMNS, *records.key.columns, f"posexplode({ops}) AS ({NUMBER}, {_OP})"])
        for part, ops in parts
    ]
    columns = [*_values(records.key, names, sequence_info), *([SHARD, SLICE, VERSION, ROW, NUMBER] if places else [])]
    return _union([select(part, columns) for part in exploded])


def _values(key: Key, names: Sequence[str], sequence_info: bool) -> list[str]:
    """Returns the SQL expressions for the columns of tuples."""
    values = [
        *key.columns,
        f"{_OP}.column",
        f"IF({_OP}.value IS NOT NULL, {TIME}, NULL)",
        f"{_OP}.value",
        f"{_OP}.op",
        *(
            [sequence_sql(VERSION, TIME, f"CAST({ROW} AS BIGINT)", SHARD_SQL, f"CAST({NUMBER} AS BIGINT)")]
            if sequence_info
            else []
        ),
    ]
    assert not sequence_info or names[-1] == SEQUENCE_COLUMN
    return [f"{value} AS {quote(name)}" for value, name in zip(values, names, strict=True)]


def columns_ddl(key: Key, *, sequence_info: bool) -> str:
    """Returns the columns of 6-tuples as DDL."""
    parts = [f"{quote(name)} {sql_type(data_type)}" for name, data_type in zip(key.names, key.types, strict=True)]
    parts += ["columnName STRING", "timestamp BIGINT", "columnValue STRING", "opType STRING"]
    return ", ".join([*parts, *([f"{SEQUENCE_COLUMN} STRING"] if sequence_info else [])])
