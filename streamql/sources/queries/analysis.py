"""The queries of dynamic tables, as Spark analyses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.delta.jvm import sentence
from streamql.delta.whole import SparkError, WholeQuery, stored_query
from streamql.errors import StreamqlError
from streamql.sources.queries.dynamic import DynamicTable
from streamql.sources.queries.query import QuerySource, digest
from streamql.sources.queries.texts import reason_text


def analysed(spark: SparkSession, dynamic: DynamicTable, moved: Mapping[str, tuple[str, ...]]) -> WholeQuery:
    """Returns a dynamic table's query, over its tables as they are named now. Raises STREAM_SOURCE_MISSING with what Spark says, and
    UNSUPPORTED_SOURCE."""
    try:
        whole = stored_query(
            spark, dynamic.name, dynamic.query, dynamic.schema, dynamic.properties, moved, dynamic.states
        )
    except SparkError as e:
        raise StreamqlError(
            "STREAM_SOURCE_MISSING",
            f"the query of {dynamic.name} cannot be analysed: {sentence(e)}",
            hint=f"correct the tables and views that it reads; or CREATE OR REPLACE {dynamic.label} {dynamic.name} with another query",
            source=str(dynamic.name),
        ) from e
    if whole.refused is not None:
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the query of {dynamic.name} {reason_text(whole.refused)}",
            hint="leave the column out, or cast it to STRING"
            if whole.refused == "NO_KEY"
            else "read Delta tables that track changes, at their current versions, and views on them",
            source=str(dynamic.name),
        )
    # A view has another query, or a column another type. Columns that were moved have another order.
    if dynamic.keys and whole.keys and set(whole.keys) != set(dynamic.keys):
        raise other_keys(dynamic)
    return whole


def other_keys(dynamic: DynamicTable) -> StreamqlError:
    """Returns the error for a query whose rows cannot be matched with those that its table has."""
    return StreamqlError(
        "UNSUPPORTED_SOURCE",
        f"the query of {dynamic.name} has changed since it was created: other key columns identify its rows now",
        hint=f"CREATE OR REPLACE {dynamic.label} {dynamic.name}, which computes all rows again",
        source=str(dynamic.name),
    )


def known_by(source: QuerySource, whole: WholeQuery) -> QuerySource:
    """Returns a source with what tells from anything else what its query reads and means."""
    texts = digest(whole.texts) if whole.texts else ""
    return replace(source, texts=texts, plan=digest(whole.plan), clock=whole.clock)


def not_incremental(whole: WholeQuery) -> str | None:
    """Returns what in a query keeps a refresh from following the changes of all its tables, as messages say it. None: nothing does."""
    what = whole.unfollowed(table.table_id for table in whole.tables)
    return None if what is None else reason_text(what)
