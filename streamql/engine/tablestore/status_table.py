"""The status table of exports as a Delta table: made, checked, read, and written by compare-and-set.

Rows are only appended. Of several rows with one key the newest counts, so a change of a row is one small commit without a Spark job.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamql.delta import neutral
from streamql.delta.names import look_up, qualify, schema_exists
from streamql.delta.table import DeltaTable, Snapshot
from streamql.delta.txns import EventLog
from streamql.dialect import parse_name
from streamql.errors import StreamqlError
from streamql.names import Name
from streamql.tablestore.status import COLUMNS, StatusRow, check_columns

_TYPES = {"long": "bigint"}


@dataclass(frozen=True)
class StatusRows:
    """The rows of a stream as of a version of the status table."""

    base: Snapshot
    rows: Sequence[StatusRow]


class StatusTable:
    """A status table that exists."""

    def __init__(self, spark: SparkSession, name: Name, path: str, table_id: str) -> None:
        self._spark = spark
        self.name = name
        self._path = path
        self._table_id = table_id
        self._table = DeltaTable(spark, path)

    def read(self, stream_id: str) -> StatusRows:
        """Returns the rows of a stream as they are now. Raises STATUS_TABLE_INVALID if the table was dropped or replaced, or has other
        columns."""
        found = look_up(self._spark, self.name)
        base = self._table.latest()
        if found.type != "delta" or not base.exists or base.table_id != self._table_id:
            raise StreamqlError(
                "STATUS_TABLE_INVALID",
                f"the status table {self.name} was dropped or replaced while an export used it",
                hint="run the job again; do not drop the status table",
            )
        check(base, self.name)
        rows = self._table.image(base).where(F.col("StreamId") == stream_id)
        return StatusRows(base, [StatusRow(*row) for row in rows.select(*(c for c, _ in COLUMNS)).collect()])

    def append(self, known: StatusRows, row: StatusRow) -> bool:
        """Appends a row. False: another process changed the table since `known` was read; nothing was written."""
        values = (*row.key, row.status, row.updated_ms)
        named = {name: value for (name, _), value in zip(COLUMNS, values, strict=True)}
        return EventLog(self._spark, self._path).append(known.base.handle, [named])


def open_status_table(spark: SparkSession, text: str) -> StatusTable:
    """Returns the status table of a name as SQL has it; makes it if there is none.

    Raises STATUS_TABLE_INVALID if something else has the name, SCHEMA_NOT_FOUND and SYNTAX_ERROR.
    """
    name = qualify(spark, parse_name(text))
    found = look_up(spark, name)
    if found.type == "missing":
        _create(spark, name)
        found = look_up(spark, name)
    if found.type != "delta":
        what = {"view": "a view", "missing": "missing"}.get(found.type, "not a Delta table that streamql can write")
        raise StreamqlError(
            "STATUS_TABLE_INVALID",
            f"{name} is not a status table: it is {what}",
            hint="name another table as statusTable; one that does not exist is made",
        )
    made = StatusTable(spark, name, found.path, found.table_id)
    check(DeltaTable(spark, found.path).latest(), name)
    return made


def check(snapshot: Snapshot, name: Name) -> None:
    """Raises STATUS_TABLE_INVALID if a table has other columns than a status table."""
    columns = json.loads(snapshot.metadata["schemaString"])["fields"]
    types = [f["type"] if isinstance(f["type"], str) else str(f["type"].get("type")) for f in columns]
    check_columns([(f["name"], _TYPES.get(t, t)) for f, t in zip(columns, types, strict=True)], str(name))


def _create(spark: SparkSession, name: Name) -> None:
    if not schema_exists(spark, name.catalog, name.schema):
        raise StreamqlError(
            "SCHEMA_NOT_FOUND",
            f"there is no schema {name.schema}, in which the status table {name} would be made",
            hint=f"CREATE SCHEMA {name.schema}",
        )
    columns = ", ".join(f"{column} {data_type.upper()}" for column, data_type in COLUMNS)
    neutral.run(spark, f"CREATE TABLE IF NOT EXISTS {name.sql} ({columns}) USING delta")
