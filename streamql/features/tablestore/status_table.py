"""The status table of exports as a Delta table: made, checked, read, and written by compare-and-set, all without a Spark job.

A change of a row is one small commit, which removes the file with the row before and those with expired rows (`status.replaced`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from streamql.delta import neutral
from streamql.delta.jvm import sentence
from streamql.delta.log import Json
from streamql.delta.names import look_up, qualify, schema_exists
from streamql.delta.table import DeltaTable, Snapshot
from streamql.delta.txns import EventLog
from streamql.dialect import parse_name
from streamql.errors import StreamqlError
from streamql.features.tablestore.jobs.status import COLUMNS, StatusFile, StatusRow, check_columns, replaced
from streamql.names import Name

_TYPES = {"long": "bigint"}

CREATIONS_MAX, CREATION_PAUSE_SECONDS = 20, 0.25
"""How often a status table is looked for, and made again, if making it fails."""


@dataclass(frozen=True)
class StatusRows:
    """The rows of the status table, as of a version of it."""

    base: Snapshot
    files: Sequence[StatusFile]

    @property
    def rows(self) -> list[StatusRow]:
        """Returns those of all files."""
        return [row for file in self.files for row in file.rows]


class StatusTable:
    """A status table that exists."""

    def __init__(self, spark: SparkSession, name: Name, path: str, table_id: str) -> None:
        self._spark = spark
        self.name = name
        self.table_id = table_id
        self._table = DeltaTable(spark, path)
        self._log = EventLog(spark, path)

    def read(self) -> StatusRows:
        """Returns the rows as they are now. Raises STATUS_TABLE_INVALID if the table was dropped or replaced, or has other columns."""
        found = look_up(self._spark, self.name)
        base = self._table.latest()
        if found.type != "delta" or not base.exists or base.table_id != self.table_id:
            raise StreamqlError(
                "STATUS_TABLE_INVALID",
                f"the status table {self.name} was dropped or replaced while an export used it",
                hint="name another statusTable and run the job again; do not drop a status table",
            )
        check(base, self.name)
        names = _column_names(base)
        files = self._log.rows(base.handle)
        return StatusRows(base, [StatusFile(path, tuple(_row(row, names) for row in rows)) for path, rows in files])

    def write(self, known: StatusRows, rows: Sequence[StatusRow], now_ms: int) -> bool:
        """Writes rows, and deletes those that they replace or that have expired. False: another process changed the table since `known`
        was read; nothing was written."""
        paths, written = replaced(known.files, rows, now_ms)
        names = _column_names(known.base)
        values = [dict(zip(names, (*row.key, row.status, row.updated_ms), strict=True)) for row in written]
        return self._log.replace(known.base.handle, paths, values)


def _row(found: Json, names: Sequence[str]) -> StatusRow:
    """Returns a row. If a user left a column NULL, its text is empty, or its time is long ago."""
    stream_id, status_type, status_value, status = (str(found.get(name, "")) for name in names[:-1])
    return StatusRow(stream_id, status_type, status_value, status, int(found.get(names[-1], 0)))


def _column_names(snapshot: Snapshot) -> list[str]:
    """Returns the names of the table's columns. They may differ from COLUMNS in upper and lower case."""
    return [column["name"] for column in json.loads(snapshot.metadata["schemaString"])["fields"]]


def find_status_table(spark: SparkSession, text: str) -> StatusTable | None:
    """Returns a status table by its name in SQL. None: there is no table of that name. Raises STATUS_TABLE_INVALID if the name is one of
    something else, and SYNTAX_ERROR."""
    name = status_table_name(spark, text)
    found = look_up(spark, name)
    if found.type == "missing":
        return None
    if found.type != "delta":
        what = "a view" if found.type == "view" else "not a Delta table that streamql can write"
        raise StreamqlError(
            "STATUS_TABLE_INVALID",
            f"{name} is not a status table: it is {what}",
            hint="name another table as statusTable; one that does not exist is made",
        )
    made = StatusTable(spark, name, found.path, found.table_id)
    check(DeltaTable(spark, found.path).latest(), name)
    return made


def status_table_name(spark: SparkSession, text: str) -> Name:
    """Returns the whole name of a status table. Raises SYNTAX_ERROR."""
    return qualify(spark, parse_name(text))


def create_status_table(spark: SparkSession, text: str) -> StatusTable:
    """Makes a status table, unless another process makes it, and returns it. Raises SCHEMA_NOT_FOUND, STATUS_TABLE_INVALID if it cannot be
    made, and SYNTAX_ERROR."""
    name = status_table_name(spark, text)
    if not schema_exists(spark, name.catalog, name.schema):
        raise StreamqlError(
            "SCHEMA_NOT_FOUND",
            f"the status table {name} cannot be made: there is no schema {name.schema}",
            hint=f"CREATE SCHEMA {name.schema}",
        )
    columns = ", ".join(f"{column} {data_type.upper()}" for column, data_type in COLUMNS)
    refused: AnalysisException | None = None
    for _ in range(CREATIONS_MAX):
        try:
            neutral.run(spark, f"CREATE TABLE IF NOT EXISTS {name.sql} ({columns}) USING delta")
        except (
            AnalysisException
        ) as e:  # another process makes the table: its directory is there, and its name is not yet
            refused = e
            time.sleep(CREATION_PAUSE_SECONDS)
        made = find_status_table(spark, text)
        if made is not None:
            return made
    raise StreamqlError(
        "STATUS_TABLE_INVALID",
        f"the status table {name} cannot be made: {'it was dropped' if refused is None else sentence(refused)}",
        hint="name another statusTable",
    ) from refused


def check(snapshot: Snapshot, name: Name) -> None:
    """Raises STATUS_TABLE_INVALID if a table has other columns than a status table."""
    if snapshot.metadata.get("partitionColumns") or "delta.columnMapping.mode" in snapshot.configuration:
        raise StreamqlError(
            "STATUS_TABLE_INVALID",
            f"{name} is not a status table: it has partitions, or mapped columns",
            hint="name another table as statusTable; one that does not exist is made",
        )
    columns = json.loads(snapshot.metadata["schemaString"])["fields"]
    types = [f["type"] if isinstance(f["type"], str) else str(f["type"].get("type")) for f in columns]
    check_columns([(f["name"], _TYPES.get(t, t)) for f, t in zip(columns, types, strict=True)], str(name))
