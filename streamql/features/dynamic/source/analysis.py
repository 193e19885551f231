"""Analyses the queries of dynamic tables with Spark, and checks that a refresh can compute them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.delta.jvm import sentence
from streamql.delta.queries import has_earlier_types
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError
from streamql.features.dynamic.source.keys import SourceKey
from streamql.features.dynamic.source.queries import DynamicQuery, Misfit, SparkError, stored_query
from streamql.features.dynamic.source.table import DynamicTable
from streamql.shared import constants
from streamql.sources.views.query import QuerySource, digest
from streamql.sources.views.texts import reason_text

HIDDEN_PREFIXES = tuple(constants("dynamicTables")[p] for p in ("keyPrefix", "statePrefix"))
"""The prefixes of columns that a dynamic table stores and does not show."""


_HINTS = {
    "NO_KEY": "leave the column out, or cast it to STRING",
    "KEY_COLUMN": "ALTER TABLE … ADD COLUMN, or RESTORE the table; or CREATE OR REPLACE {} AS …, which takes the present key",
}
"""The hints for some reasons for which a query is refused. {}: the dynamic table."""


def analysed(
    spark: SparkSession,
    dynamic: DynamicTable,
    moved: Mapping[str, tuple[str, ...]],
    keys: Mapping[str, SourceKey],
) -> DynamicQuery:
    """Returns a dynamic table's query, analysed over its tables by their present names. `moved`: the names of renamed tables, by the name
    in the text. `keys`: of its tables, by table id. Raises STREAM_SOURCE_MISSING with Spark's error, and UNSUPPORTED_SOURCE."""
    written = dynamic.query, dynamic.schema, dynamic.properties
    stored = _stored(spark, dynamic)
    try:
        query = stored_query(spark, dynamic.name, *written, moved, stored, keys)
        if dynamic.keys and query.keys and set(query.keys) != set(dynamic.keys):
            # An earlier streamql made the table, and took no key of row_number() = 1.
            query = stored_query(spark, dynamic.name, *written, moved, stored, keys, derives=False)
    except SparkError as e:
        raise StreamqlError(
            "STREAM_SOURCE_MISSING",
            f"the query of {dynamic.name} cannot be analysed: {sentence(e)}",
            hint="CREATE OR REPLACE the view that it reads with the same text, which gives the view's columns the types that they have now"
            if has_earlier_types(e)
            else f"correct the tables and views that it reads; or CREATE OR REPLACE {dynamic.label} {dynamic.name} with another query",
            source=str(dynamic.name),
        ) from e
    if query.refused is not None:
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the query of {dynamic.name} {reason_text(query.refused)}",
            hint=_HINTS.get(
                query.refused, "read Delta tables that track changes, at their current versions, and views on them"
            ).format(f"{dynamic.label} {dynamic.name}"),
            source=str(dynamic.name),
        )
    # The keys differ if a view that the query reads has another query now. They may have another order, if columns were moved.
    if dynamic.keys and query.keys and set(query.keys) != set(dynamic.keys):
        raise _replaced(dynamic, _other_keys(dynamic))
    if query.misfit is not None:
        raise _replaced(dynamic, _said(dynamic, query.misfit))
    return query


def _stored(spark: SparkSession, dynamic: DynamicTable) -> str | None:
    """Returns the columns of the backing table that refreshes write, as a schema in JSON. None: the table does not exist yet."""
    if not dynamic.backing.path:
        return None
    latest = DeltaTable(spark, dynamic.backing.path).latest()
    if not latest.exists:
        return None
    written = {c.lower() for c in dynamic.stored_columns}
    schema = json.loads(latest.metadata["schemaString"])
    return json.dumps({**schema, "fields": [f for f in schema["fields"] if f["name"].lower() in written]})


def _other_keys(dynamic: DynamicTable) -> str:
    return f"the query of {dynamic.name} has changed since it was created: other key columns identify its rows now"


def _said(dynamic: DynamicTable, misfit: Misfit) -> str:
    """Returns a sentence that says that a column of a dynamic table cannot hold the values that its query has now."""
    if misfit.column.startswith(HIDDEN_PREFIXES):
        return f"{_other_keys(dynamic)}, {misfit.now or 'without a field'} in the place of {misfit.was}"
    now = (
        "no longer has it"
        if misfit.now is None
        else f"has {misfit.now} for it now, a type that Delta cannot widen it to"
    )
    return f"column {misfit.column} of {dynamic.name} is {misfit.was}, and the query {now}"


def _replaced(dynamic: DynamicTable, why: str) -> StreamqlError:
    """Returns the error for a query whose rows the backing table cannot hold."""
    return StreamqlError(
        "UNSUPPORTED_SOURCE",
        why,
        hint=f"CREATE OR REPLACE {dynamic.label} {dynamic.name} AS …, which computes all rows again, and CREATE OR REPLACE the "
        "streams on it",
        source=str(dynamic.name),
    )


def not_computed(dynamic: DynamicTable, e: BaseException) -> StreamqlError:
    """Returns the error for a query that fails for the present rows of its tables. `e`: Spark's error."""
    return StreamqlError(
        "DYNAMIC_TABLE_REFRESH_FAILED",
        f"the query of {dynamic.name} cannot be computed: {sentence(e)}",
        hint=f"correct the rows that it reads; or CREATE OR REPLACE {dynamic.label} {dynamic.name} AS …, with try_divide(), try_cast() "
        "or a wider type where it fails",
        source=str(dynamic.name),
    )


def known_by(source: QuerySource, query: DynamicQuery) -> QuerySource:
    """Returns a source with digests that identify what its query reads and means: its texts, its plan, and its use of the clock."""
    texts = digest(query.texts) if query.texts else ""
    return replace(source, texts=texts, plan=digest(query.plan), clock=query.clock)


def not_incremental(query: DynamicQuery) -> str | None:
    """Returns why a refresh cannot be incremental if all tables of the query have changed, as a text for messages. None: it can be."""
    what = query.unfollowed(table.table_id for table in query.tables)
    return None if what is None else reason_text(what)
