"""Views as sources of streams. They are found by name, and recognized by their text and the tables that they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from streamql.delta.names import look_up
from streamql.delta.queries import TrackedQuery, query_of_view
from streamql.dialect.text.tokens import scan
from streamql.errors import StreamqlError
from streamql.model import TableSource
from streamql.names import Name
from streamql.sources.protocol import SourceType
from streamql.sources.tables.history import TRACKING_LINE
from streamql.sources.tables.replaced import COMPARED
from streamql.sources.tables.table import open_table
from streamql.sources.views.query import OpenQuery, QuerySource, digest, not_found
from streamql.sources.views.texts import ACCEPTED, NOT_CURRENT_TABLES, reason_text


def find_view(spark: SparkSession, name: Name) -> QuerySource | None:
    """Returns the view of a name, with the tables that it reads; None: the name is not a view. Raises UNSUPPORTED_SOURCE if no stream can
    be created on it, and what `query_of_view` raises."""
    if look_up(spark, name).type != "view":
        return None
    query = query_of_view(spark, name)
    if query.refused is not None:
        more = (
            " of Delta tables at their current versions"
            if query.refused in NOT_CURRENT_TABLES
            else "; for other queries, CREATE DYNAMIC TABLE"
        )
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the view {name} {reason_text(query.refused)}",
            hint=f"streams follow {ACCEPTED}{more}",
            source=str(name),
        )
    return QuerySource(VIEW.name, name, digest_of(query), tuple((part_of(t), t) for t in query.tables))


def part_of(table: TableSource) -> str:
    """Returns the name of a table's part in positions."""
    return str(table.name)


def digest_of(query: TrackedQuery) -> str:
    """Returns a digest that identifies a query. It covers the texts of the views in the query, without spaces and comments, and which names
    stand for the same table.

    It does not cover the columns. If a query has `*`, its columns change when columns of a table are renamed, added or dropped. A stream on
    the table itself accepts such changes, too. Only for a NATURAL join it covers them, because they are its condition.
    """
    texts = [[token.text for token in scan(text)] for text in query.texts]
    is_natural = any(word.upper() == "NATURAL" for text in texts for word in text)
    return digest([texts, query.columns if is_natural else (), query.branches])


def _former_digest(query: TrackedQuery) -> str:
    """Returns the digest that an earlier streamql stored in place of `digest_of`."""
    return digest([query.texts, query.columns, query.branches])


def open_view(spark: SparkSession, source: QuerySource) -> OpenQuery:
    """Opens a view, and the tables that it reads. Raises STREAM_SOURCE_MISSING, and STREAM_SOURCE_REPLACED if the query of the view was
    changed, or it reads other tables."""
    if look_up(spark, source.name).type != "view":
        raise not_found(
            source,
            "view",
            "STREAM_SOURCE_MISSING",
            "no longer exists",
            "CREATE the view as it was: the stream continues where it was; or DROP the stream",
        )
    query = query_of_view(spark, source.name)
    ids, known = [t.table_id for t in query.tables], [t.table_id for _, t in source.tables]
    if source.digest not in (digest_of(query), _former_digest(query)) or (ids != known and set(ids) == set(known)):
        raise _replaced(
            source,
            "was given another query after the stream was created",
            f"{_continued(source)}; or CREATE OR REPLACE the view with its former query"
            if set(ids) == set(known)
            else f"CREATE OR REPLACE the view with its former query; or the stream on the view as it is now. {COMPARED}",
        )
    if ids != known:
        raise _replaced(
            source, "reads a table that was dropped and created again, or replaced", _new_stream(spark, query)
        )
    parts = [part for part, _ in source.tables]
    tables = {part: open_table(spark, table) for part, table in zip(parts, query.tables, strict=True)}
    found = tuple((part, table.ref) for part, table in tables.items())
    return OpenQuery(spark, QuerySource(source.type_name, source.name, digest_of(query), found), tables, "view", query)


def _replaced(source: QuerySource, what: str, hint: str) -> StreamqlError:
    return not_found(source, "view", "STREAM_SOURCE_REPLACED", what, hint)


def _continued(source: QuerySource) -> str:
    """Returns the hint how to continue a stream at its offset with the new query, which reads the same tables."""
    again = f"CREATE OR REPLACE STREAM s ON VIEW {source.name} AT (STREAM => 's')"
    return f"{again} continues stream s at its offset, with the query as it is now"


def _new_stream(spark: SparkSession, query: TrackedQuery) -> str:
    """Returns the hint for a table of the view that was replaced: how to create the stream on the view as it is now."""
    tables = [open_table(spark, table) for table in query.tables]
    lines = [TRACKING_LINE.format(t.ref.name) for t in tables if not t.tracks_changes]
    return f"{'; '.join([*lines, 'CREATE OR REPLACE the stream on the view'])}. {COMPARED}"


def _read(data: Mapping[str, Any]) -> QuerySource:
    return QuerySource.from_json(VIEW.name, data)


VIEW = SourceType(
    name="view",
    label="VIEW",
    read=_read,
    open=open_view,
    find=find_view,
    statement_types=("VIEW",),
    query_plan=lambda spark, source: open_view(spark, source).query.handle.analysed(),
)
