"""Writes the 6-tuples of an export: as one local file, as a directory of parquet files, or as rows of a Delta table.

Tasks write the rows; none passes through the driver. A file is joined from parts, a part for each shard and slice, in their order.
"""

from __future__ import annotations

import contextlib
import glob
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from streamql.delta.images import select
from streamql.delta.jvm import sentence
from streamql.delta.names import look_up, qualify
from streamql.delta.neutral import neutral
from streamql.delta.table import DeltaTable, ScannedFiles
from streamql.delta.txns import find_txn
from streamql.delta.uses import SLICE, TIME, VERSION
from streamql.dialect import parse_name, quote_string
from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.expressions import sequence_sql
from streamql.features.tablestore.formats.records import OpType, tuple_columns
from streamql.features.tablestore.formats.values import text_sql
from streamql.features.tablestore.jobs.outputs import (
    MARKER,
    TXN_VERSION,
    app_id,
    exists,
    join_files,
    marked_digest,
    marker_text,
    parts_path,
    staged_path,
)
from streamql.features.tablestore.jobs.writers import Format, Writer, local_path
from streamql.features.tablestore.records.entries import OPS, ROW, SHARD, SHARD_SQL
from streamql.features.tablestore.records.rows import NUMBER, Records, columns_ddl, counts_sql, tuples

Counts = Mapping[str, int]

_ORDER = [SHARD, SLICE, VERSION, ROW, NUMBER]
_SHARD_DIRECTORY, _SLICE_DIRECTORY = "shard", "slice"
_JSON_TYPES = frozenset({"byte", "short", "integer", "long", "boolean"})
_CSV_QUOTED = r"(?U)^\s|\s$|[\x1c-\x1f]"
"""Texts that readers may trim. Python counts the separators \\x1c to \\x1f as white space, Java's \\s does not."""


@dataclass(frozen=True)
class Output:
    """Where an export goes. `digest`: what recognizes it. `sequence_info`: whether tuples have it."""

    writer: Writer
    digest: str
    sequence_info: bool


def write(records: Records, output: Output) -> Counts:
    """Writes all tuples of records; what another run of the job wrote is left as it is. Returns how many tuples of each opType there are.

    Raises OUTPUT_EXISTS and OUTPUT_NOT_WRITABLE, and what running the records raises; the target is then as it was.
    """
    return {
        Format.JSONL: _write_file,
        Format.CSV: _write_file,
        Format.PARQUET: _write_parquet,
        Format.DELTA: _write_delta,
    }[output.writer.format](records, output)


def _counted(rows: DataFrame) -> tuple[DataFrame, Observation]:
    observation = Observation()
    return rows.observe(observation, *(F.expr(text).alias(op) for op, text in counts_sql().items())), observation


def _counts(observation: Observation) -> Counts:
    found = observation.get
    return {op.value: int(found[op.value]) for op in OpType if found.get(op.value)}


# -- jsonl and csv


def _write_file(records: Records, output: Output) -> Counts:
    writer = output.writer
    assert writer.path is not None
    target = local_path(writer.path)
    assert target is not None
    names = tuple_columns(records.key.names, sequence_info=output.sequence_info, table=records.table)
    rows = records.rows
    if rows is None:
        join_files([], names, writer, output.digest)
        return {}
    with _own_directory(parts_path(target.absolute(), output.digest)) as directory:
        counted, observation = _counted(rows)
        lines = f"array_join(transform({OPS}, (x, i) -> {line_sql(records, output)}), '\\n') AS value"
        ordered = counted.sortWithinPartitions(SHARD, SLICE, VERSION, ROW)
        parts = select(ordered, [lines, f"{SHARD} AS {_SHARD_DIRECTORY}", f"{SLICE} AS {_SLICE_DIRECTORY}"])
        with _own_errors(writer):
            parts.write.partitionBy(_SHARD_DIRECTORY, _SLICE_DIRECTORY).options(
                compression="none", lineSep="\n", maxRecordsPerFile=0
            ).text(f"file://{directory}")
        join_files(_in_order(directory), names, writer, output.digest)
        return _counts(observation)


@contextlib.contextmanager
def _own_directory(path: Path) -> Iterator[Path]:
    """Yields a name for a directory of this run, and removes the directory at the end. Directories of earlier runs are removed first. Each
    run has its own, because Spark's process outlives a Python process that was killed and may still write for a moment."""

    def remove() -> None:
        for directory in path.parent.glob(f"{glob.escape(path.name)}.*"):
            shutil.rmtree(directory, ignore_errors=True)

    remove()
    try:
        yield path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}")
    finally:
        remove()


def _in_order(directory: Path) -> list[Path]:
    """Returns the part files by shard and slice."""

    def place(path: Path) -> tuple[int, int, str]:
        shard, number = (int(path.parents[i].name.partition("=")[2]) for i in (1, 0))
        return shard, number, path.name

    return sorted(directory.glob(f"{_SHARD_DIRECTORY}=*/{_SLICE_DIRECTORY}=*/part-*"), key=place)


def line_sql(records: Records, output: Output) -> str:
    """Returns the SQL expression for the line of a tuple, as `outputs.json_line` and `outputs.csv_line` make it, without its line feed.

    The tuple is the struct `x` of OPS, and `i` its number in the record.
    """
    key = records.key
    is_json = output.writer.format is Format.JSONL
    names = tuple_columns(key.names, sequence_info=output.sequence_info, table=records.table)
    values = [
        column if is_json and data_type in _JSON_TYPES else text_sql(column, data_type)
        for column, data_type in zip(key.columns, key.types, strict=True)
    ]
    values += ["x.column", f"IF(x.op = 'U', {TIME}, NULL)", "x.value", "x.op"]
    if output.sequence_info:
        values.append(sequence_sql(VERSION, TIME, f"CAST({ROW} AS BIGINT)", SHARD_SQL, "CAST(i AS BIGINT)"))
    if is_json:
        fields = ", ".join(f"{quote_string(name)}, {value}" for name, value in zip(names, values, strict=True))
        return f"to_json(named_struct({fields}), map('ignoreNullFields', 'false'))"
    delimiter = output.writer.delimiter
    return f"concat({f', {quote_string(delimiter)}, '.join(_csv_field(f'CAST({v} AS STRING)', delimiter) for v in values)})"


def _csv_field(text: str, delimiter: str) -> str:
    special = " OR ".join(
        [f"{text} = ''", f"{text} RLIKE {quote_string(_CSV_QUOTED)}"]
        + [f"contains({text}, {quote_string(c)})" for c in (delimiter, '"', "\n", "\r")]
    )
    quoted = f"""concat('"', replace({text}, '"', '""'), '"')"""
    return f"CASE WHEN {text} IS NULL THEN '' WHEN {special} THEN {quoted} ELSE {text} END"


# -- parquet and delta


def _sorted(records: Records, output: Output) -> tuple[DataFrame, Observation | None]:
    """Returns the tuples in their order within each shard and slice, which one task has."""
    rows = records.rows
    if rows is None:
        ddl = columns_ddl(records.key, sequence_info=output.sequence_info)
        return neutral(records.spark).createDataFrame([], ddl), None
    counted, observation = _counted(rows)
    found = tuples(records, sequence_info=output.sequence_info, places=True, rows=counted)
    assert found is not None
    return found.sortWithinPartitions(*_ORDER).drop(*_ORDER), observation


def _write_parquet(records: Records, output: Output) -> Counts:
    path = output.writer.path
    assert path is not None
    target = local_path(path)
    if target is None:
        raise StreamqlError(
            "OUTPUT_NOT_WRITABLE",
            f"{path} cannot be written: the writer parquet writes local directories",
            hint="use the writer delta, which writes all storage that Spark writes",
            path=path,
        )
    if target.exists():
        return _same_or_refused(target, output.digest)
    with _own_directory(staged_path(target.absolute(), output.digest)) as staged, _own_errors(output.writer):
        rows, observation = _sorted(records, output)
        rows.write.parquet(f"file://{staged}")
        counts = {} if observation is None else _counts(observation)
        (staged / MARKER).write_text(marker_text(output.digest, counts), encoding="utf-8")
        try:
            staged.rename(target)
        except OSError as e:
            if target.exists():
                raise exists(str(target)) from e
            raise
    return counts


def _same_or_refused(target: Path, digest: str) -> Counts:
    """Returns the counts of the job's own output. Raises OUTPUT_EXISTS if it is something else."""
    try:
        text = (target / MARKER).read_text(encoding="utf-8")
    except OSError:
        text = ""
    if marked_digest(text) != digest:
        raise exists(str(target))
    return {str(op): int(count) for op, count in json.loads(text)["tuples"].items()}


def _write_delta(records: Records, output: Output) -> Counts:
    writer = output.writer
    spark = neutral(records.spark)
    with _own_errors(writer):
        path = _delta_path(spark, writer)
        before = -1 if path is None else DeltaTable(spark, path).latest().version
        if path is not None and _is_appended(spark, path, output.digest):
            return _count(records)
        appended = (
            _sorted(records, output)[0]
            .write.format("delta")
            .mode("append")
            .options(txnAppId=app_id(output.digest), txnVersion=TXN_VERSION)
        )
        if writer.path is not None:
            appended.save(writer.path)
        else:
            assert writer.table is not None
            appended.saveAsTable(qualify(spark, parse_name(writer.table)).sql)
        return _appended_counts(spark, _delta_path(spark, writer), before, app_id(output.digest))


def _appended_counts(spark: SparkSession, path: str | None, before: int, app: str) -> Counts:
    """Returns the counts of the rows that the commit of a transaction added after a version: of its files one column is read."""
    assert path is not None
    table = DeltaTable(spark, path)
    latest = table.latest()
    commits = [c for c in table.commits(latest, before, latest.version) if app in c.transactions]
    files = [change.after for commit in commits for change in commit.changes if change.after is not None]
    found = table.scan(ScannedFiles(latest.handle, files)).groupBy("opType").count().collect() if files else []
    return {op.value: int(row["count"]) for op in OpType for row in found if row["opType"] == op.value}


def _count(records: Records) -> Counts:
    rows = records.rows
    if rows is None:
        return {}
    row = rows.agg(*(F.expr(text).alias(op) for op, text in counts_sql().items())).first()
    assert row is not None
    return {op.value: int(row[op.value]) for op in OpType if op.value in row.asDict() and row[op.value]}


def _delta_path(spark: SparkSession, writer: Writer) -> str | None:
    """Returns where the Delta table is. None: there is none yet. Raises OUTPUT_NOT_WRITABLE if the name is one of something else."""
    if writer.path is not None:
        return writer.path
    assert writer.table is not None
    found = look_up(spark, qualify(spark, parse_name(writer.table)))
    if found.type not in ("missing", "delta"):
        raise StreamqlError(
            "OUTPUT_NOT_WRITABLE",
            f"{writer.table} is not a Delta table",
            hint="name a Delta table, or a name that is free",
            path=writer.table,
        )
    return found.path if found.type == "delta" else None


def _is_appended(spark: SparkSession, path: str, digest: str) -> bool:
    """Returns whether a Delta table has the rows of the export."""
    table = DeltaTable(spark, path)
    latest = table.latest()
    return latest.exists and find_txn(spark, table, latest, app_id(digest), TXN_VERSION, -1) is not None


@contextlib.contextmanager
def _own_errors(writer: Writer) -> Iterator[None]:
    """Raises errors of Spark's analysis and of the file system as OUTPUT_NOT_WRITABLE."""
    try:
        yield
    except (AnalysisException, OSError) as e:
        why = e.strerror or str(e) if isinstance(e, OSError) else sentence(e)
        raise StreamqlError(
            "OUTPUT_NOT_WRITABLE",
            f"{writer.target} cannot be written: {why}",
            hint="name another path or table",
            path=writer.target,
        ) from e
