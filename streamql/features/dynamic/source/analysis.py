"""The queries of dynamic tables, as Spark analyses them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.delta.jvm import sentence
from streamql.delta.queries import has_earlier_types
from streamql.delta.table import DeltaTable
from streamql.errors import StreamqlError
from streamql.features.dynamic.source.queries import DynamicQuery, Misfit, SparkError, stored_query
from streamql.features.dynamic.source.table import DynamicTable
from streamql.shared import constants
from streamql.sources.views.query import QuerySource, digest
from streamql.sources.views.texts import reason_text

HIDDEN_PREFIXES = tuple(constants("dynamicTables")[p] for p in ("keyPrefix", "statePrefix"))
"""How the names of columns begin that a dynamic table stores and does not show."""


def analysed(spark: SparkSession, dynamic: DynamicTable, moved: Mapping[str, tuple[str, ...]]) -> DynamicQuery:
    """Returns a dynamic table's query, over its tables as they are named now. Raises STREAM_SOURCE_MISSING with what Spark says, and
    UNSUPPORTED_SOURCE."""
    try:
        whole = stored_query(
            spark, dynamic.name, dynamic.query, dynamic.schema, dynamic.properties, moved, _stored(spark, dynamic)
        )
    except SparkError as e:
        raise StreamqlError(
            "STREAM_SOURCE_MISSING",
            f"the query of {dynamic.name} cannot be analysed: {sentence(e)}",
            hint="CREATE OR REPLACE the view that it reads with the same text, which gives the view's columns the types that they have now"
            if has_earlier_types(e)
            else f"correct the tables and views that it reads; or CREATE OR REPLACE {dynamic.label} {dynamic.name} with another query",
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
    # A view has another query. Columns that were moved have another order.
    if dynamic.keys and whole.keys and set(whole.keys) != set(dynamic.keys):
        raise _replaced(dynamic, _other_keys(dynamic))
    if whole.misfit is not None:
        raise _replaced(dynamic, _said(dynamic, whole.misfit))
    return whole


def _stored(spark: SparkSession, dynamic: DynamicTable) -> str | None:
    """Returns the columns of a backing table that refreshes write, as a schema, JSON. None: it is still to be made."""
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
    """Says that a column of a dynamic table cannot hold the values that its query has now."""
    if misfit.column.startswith(HIDDEN_PREFIXES):
        return f"{_other_keys(dynamic)}, {misfit.now or 'without a field'} in the place of {misfit.was}"
    now = (
        "no longer has it"
        if misfit.now is None
        else f"has {misfit.now} for it now, a type that Delta cannot widen it to"
    )
    return f"column {misfit.column} of {dynamic.name} is {misfit.was}, and the query {now}"


def _replaced(dynamic: DynamicTable, why: str) -> StreamqlError:
    """Returns the error for a query whose rows are to be in another table than the one that there is."""
    return StreamqlError(
        "UNSUPPORTED_SOURCE",
        why,
        hint=f"CREATE OR REPLACE {dynamic.label} {dynamic.name} AS …, which computes all rows again, and CREATE OR REPLACE the "
        "streams on it",
        source=str(dynamic.name),
    )


def not_computed(dynamic: DynamicTable, e: BaseException) -> StreamqlError:
    """Returns the error for a query that cannot be computed over the rows that there are, by what Spark says of it."""
    return StreamqlError(
        "DYNAMIC_TABLE_REFRESH_FAILED",
        f"the query of {dynamic.name} cannot be computed: {sentence(e)}",
        hint=f"correct the rows that it reads; or CREATE OR REPLACE {dynamic.label} {dynamic.name} AS …, with try_divide(), try_cast() "
        "or a wider type where it fails",
        source=str(dynamic.name),
    )


def known_by(source: QuerySource, whole: DynamicQuery) -> QuerySource:
    """Returns a source with what tells from anything else what its query reads and means."""
    texts = digest(whole.texts) if whole.texts else ""
    return replace(source, texts=texts, plan=digest(whole.plan), clock=whole.clock)


def not_incremental(whole: DynamicQuery) -> str | None:
    """Returns what in a query keeps a refresh from following the changes of all its tables, as messages say it. None: nothing does."""
    what = whole.unfollowed(table.table_id for table in whole.tables)
    return None if what is None else reason_text(what)
