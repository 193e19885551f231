"""The type of source that Delta tables are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from streamql.delta.names import look_up
from streamql.delta.table import latest_versions
from streamql.model import SourceRef, TableSource
from streamql.names import Name
from streamql.sources.protocol import Peek, SourceType
from streamql.sources.registry import type_of
from streamql.sources.tables.table import OpenTable, open_table


def open_named(spark: SparkSession, source: TableSource) -> OpenTable:
    """Finds a table that a query reads, by its own type. It must have a name. Raises STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED."""
    named = type_of(source).named
    assert named is not None
    found = named(spark, source)
    assert isinstance(found, OpenTable)
    return found


def find_table(spark: SparkSession, name: Name) -> TableSource | None:
    """Returns the Delta table of a name; None: there is none."""
    found = look_up(spark, name)
    return TableSource(name, found.path, found.table_id) if found.type == "delta" else None


def peek(spark: SparkSession, sources: Sequence[TableSource]) -> list[Peek | None]:
    """Returns the newest versions of several tables, read at once."""
    versions = latest_versions(spark, sorted({s.path for s in sources}))

    def one(source: TableSource) -> Peek:
        latest = versions[source.path]
        is_same = latest.table_id == source.table_id and source.seen in (None, (latest.version, latest.time_ms))
        return Peek(latest.version, latest.time_ms, is_same)

    return [one(source) for source in sources]


def by_row_ids(spark: SparkSession, source: SourceRef) -> TableSource | None:  # noqa: ARG001 - of other identities, the session is asked
    """Returns the table of a source with its rows recognized by their row ids; None: the source is not a table."""
    if not isinstance(source, TableSource):
        return None
    return TableSource(source.name, source.path, source.table_id, source.seen)


TABLE = SourceType(
    name="table",
    label="TABLE",
    read=TableSource.from_json,
    open=open_table,
    find=find_table,
    peek=peek,
    identity="ROW_ID",
    identify=by_row_ids,
    shown_identity=lambda _: "ROW_ID",
    named=partial(open_table, by_name=True),
)
