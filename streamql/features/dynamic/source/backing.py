"""Creates and drops the Delta table and the view that a dynamic table consists of."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import is_conflict
from streamql.delta.names import look_up, qualify, view_columns, view_property
from streamql.delta.neutral import dynamic_session
from streamql.delta.table import DeltaTable
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.features.dynamic.language.statements import CreateDynamicTable
from streamql.features.dynamic.source.analysis import analysed
from streamql.features.dynamic.source.graph import in_order, upstream
from streamql.features.dynamic.source.keys import keys_of
from streamql.features.dynamic.source.queries import DynamicQuery, SparkError
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic, find_dynamic
from streamql.misspelt import name_suggestion
from streamql.model import TableSource
from streamql.names import Name, quote
from streamql.shared import constants
from streamql.sources.protocol import HIDDEN_SUFFIX
from streamql.sources.views.positions import part_of
from streamql.sources.views.query import QuerySource

MARK = constants("properties")["dynamicTable"]
"""The property that the backing table and the view have: the id of the definition that they belong to."""

_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
}

_UNMAPPED_NOT = frozenset(" ,;{}()\n\t=")
"""Characters that the name of a column may have only if column mapping is on. Spark gives such names to expressions, such as `count(1)`."""


def need_dynamic(
    spark: SparkSession, parts: Sequence[str], *, is_view: bool | None, where: Mapping[str, int]
) -> DynamicTable:
    """Returns the dynamic table or materialized view that a statement names. `is_view`: whether the statement calls it a materialized view;
    None: it may be either. Raises DYNAMIC_TABLE_NOT_FOUND."""
    found = find_dynamic(spark, qualify(spark, tuple(parts)))
    if found is None:
        raise _missing(spark, parts, where)
    if is_view is not None and is_view != (found.label == "MATERIALIZED VIEW"):
        raise StreamqlError(
            "DYNAMIC_TABLE_NOT_FOUND",
            f"{found.name} is a {found.definition.type.value}",
            hint=f"write {found.label} {found.name}",
            **where,
        )
    return found


def hidden_stream(spark: SparkSession, dynamic: DynamicTable) -> StreamState:
    """Returns the hidden stream of a table, as of now. Its consumptions are the table's refreshes. Raises DYNAMIC_TABLE_NOT_FOUND if the
    table was dropped meanwhile."""
    state = catalog_of(spark).by_uuid(spark, dynamic.stream_id)
    if state is None:
        raise StreamqlError(
            "DYNAMIC_TABLE_NOT_FOUND",
            f"another process dropped {dynamic.name} during this statement",
            hint="SHOW DYNAMIC TABLES lists those there are",
        )
    return state


def query_of(state: StreamState) -> QuerySource:
    """Returns the query that a hidden stream is on."""
    source = state.stream.source
    assert isinstance(source, QuerySource)
    return source


def reads_of(spark: SparkSession, tables: Iterable[DynamicTable]) -> dict[str, list[str]]:
    """Returns, for each dynamic table, the dynamic tables that its query read at the last refresh. Tables are given by the ids of their
    definitions."""
    tables = list(tables)
    catalog_of(spark).refresh(spark)  # so that `last_read` below returns the present states
    return upstream(tables, {t.definition.uuid: _ids(spark, t) for t in tables})


def _ids(spark: SparkSession, table: DynamicTable) -> frozenset[str]:
    state = catalog_of(spark).last_read(spark, table.stream_id)
    return frozenset() if state is None else frozenset(t.table_id for _, t in query_of(state).tables)


def check_acyclic(spark: SparkSession, table: DynamicTable, ids: Iterable[str], **where: int) -> None:
    """Raises UNSUPPORTED_SOURCE if a table reads itself, directly or through others. `ids`: the ids of the Delta tables that its query
    reads now."""
    known = {t.definition.uuid: t for t in all_dynamic(spark)}
    own = table.definition.uuid
    read = upstream(known.values(), {own: frozenset(ids)})[own]
    if own not in in_order(read, reads_of(spark, known.values())):
        return
    by = ", ".join(str(known[uid].name) for uid in read if uid != own)
    raise StreamqlError(
        "UNSUPPORTED_SOURCE",
        f"the query of {table.name} reads {table.name} itself{f', through {by}' if by else ''}",
        hint=f"read the source tables of {table.name} instead",
        **where,
    )


def make_backing(
    spark: SparkSession, dynamic: DynamicTable, source: QuerySource, statement: CreateDynamicTable
) -> TableSource:
    """Creates the empty backing table. `source`: the table's query. Raises what Spark and Delta raise."""
    own = dynamic_session(spark)
    rows = analysed(own, dynamic, {}, keys_of(source.tables)).rows({}).where("false")
    columns = [quote(c) for c in dynamic.stored_columns]
    writer = rows.select(*columns).writeTo(dynamic.backing.name.sql).using("delta")
    is_odd = any(_UNMAPPED_NOT.intersection(c) for c in dynamic.stored_columns)
    mapping = {"delta.columnMapping.mode": "name"} if is_odd else {}
    for key, value in {**mapping, **dict(statement.properties), **_TRACKING, MARK: dynamic.definition.uuid}.items():
        writer = writer.tableProperty(key, value)
    for column in statement.partitioned_by:
        if isinstance(rows.select(quote(column)).schema[0].dataType, BinaryType):
            raise StreamqlError(
                "UNSUPPORTED_CLAUSE",
                f"PARTITIONED BY ({column}): Delta stores BINARY values of partition columns as text, which changes them",
                hint=f"CLUSTER BY ({column})",
            )
    if statement.partitioned_by:
        first, *others = (rows[quote(c)] for c in statement.partitioned_by)
        writer = writer.partitionedBy(first, *others)
    if statement.cluster_by:
        writer = writer.clusterBy(*statement.cluster_by)
    writer.create()
    found = look_up(own, dynamic.backing.name)
    return TableSource(dynamic.backing.name, found.path, found.table_id)


def make_view(spark: SparkSession, dynamic: DynamicTable, comments: Mapping[str, str | None], *, replace: bool) -> None:
    """Creates the view by which users read the rows. `comments`: of its columns."""
    shown = ", ".join(
        quote(c) + (f" COMMENT {quote_string(text)}" if (text := comments.get(c)) else "") for c in dynamic.columns
    )
    columns = ", ".join(quote(c) for c in dynamic.columns)
    comment = f"COMMENT {quote_string(dynamic.definition.comment)} " if dynamic.definition.comment else ""
    dynamic_session(spark).sql(
        f"CREATE {'OR REPLACE ' if replace else ''}VIEW {dynamic.name.sql} ({shown}) {comment}"
        f"TBLPROPERTIES ({quote_string(MARK)} = {quote_string(dynamic.definition.uuid)}) "
        f"AS SELECT {columns} FROM {dynamic.backing.name.sql}"
    )


def show_rows(spark: SparkSession, dynamic: DynamicTable, *, or_missing: bool = False) -> None:
    """Makes the view show the table's rows. It may show those of a former table, if the process of a CREATE OR REPLACE died. `or_missing`:
    creates the view if it does not exist."""
    mark = mark_of(spark, dynamic.name)
    if mark != dynamic.definition.uuid and (mark is not None or or_missing):
        make_view(spark, dynamic, {}, replace=mark is not None)


def take_types(spark: SparkSession, dynamic: DynamicTable, query: DynamicQuery) -> bool:
    """Gives the backing table and the view the types of the query, before rows of these types are written. Returns False if another refresh
    did so at the same time, and this one has to start again."""
    try:
        if query.widens:
            query.widen(dynamic.backing.path)
    except SparkError as e:
        if is_conflict(e):
            return False
        raise
    _show_types(spark, dynamic)
    return True


def _show_types(spark: SparkSession, dynamic: DynamicTable) -> None:
    """Makes the view have the types of the backing table's columns. Spark casts the columns of a view to the types that it was created
    with. The two differ if the types were changed now, or by a refresh whose process died."""
    shown = view_columns(spark, dynamic.name)
    if shown is None or mark_of(spark, dynamic.name) != dynamic.definition.uuid:
        return
    backing = DeltaTable(spark, dynamic.backing.path)
    stored = {f.name.lower(): f.dataType.simpleString() for f in backing.schema(backing.latest()).fields}
    if any(f.dataType.simpleString() != stored.get(f.name.lower()) for f in shown.fields):
        make_view(spark, dynamic, comments_of(spark, dynamic), replace=True)


def comments_of(spark: SparkSession, dynamic: DynamicTable) -> dict[str, str | None]:
    """Returns the comments of a dynamic table's columns, by name. Empty if its view does not exist, or belongs to another table."""
    if mark_of(spark, dynamic.name) != dynamic.definition.uuid:
        return {}
    shown = view_columns(spark, dynamic.name)
    return {f.name: f.metadata.get("comment") for f in shown.fields} if shown is not None else {}


def drop_parts(spark: SparkSession, dynamic: DynamicTable, *, view: bool = True) -> None:
    """Drops the view and the backing table, as far as they exist. A view that belongs to another dynamic table is not dropped. `view`:
    False: keeps the view."""
    own = dynamic_session(spark)
    if view and mark_of(spark, dynamic.name) == dynamic.definition.uuid:
        own.sql(f"DROP VIEW IF EXISTS {dynamic.name.sql}")
    own.sql(f"DROP TABLE IF EXISTS {dynamic.backing.name.sql}")


def drop_unless_shown(spark: SparkSession, dynamic: DynamicTable) -> None:
    """Drops the parts of a table whose definition another process has dropped. If another table has its name, they stay: a CREATE OR
    REPLACE shows the old rows until it has its own, and restores the old table if it fails."""
    if find_dynamic(spark, dynamic.name) is None:
        drop_parts(spark, dynamic)


def shown_names(spark: SparkSession) -> dict[str, str]:
    """Returns the names of dynamic tables by the names that positions have for their backing tables."""
    return {part_of(t.backing): part_of(replace(t.backing, name=t.name)) for t in all_dynamic(spark)}


def mark_of(spark: SparkSession, name: Name) -> str | None:
    """Returns the id of the definition that a view belongs to. None: there is no such view, or it belongs to no dynamic table."""
    return view_property(spark, name, MARK)


def is_left_over(spark: SparkSession, name: Name) -> bool:
    """Returns whether a view belongs to a dynamic table whose CREATE, DROP or RENAME did not finish."""
    mark = mark_of(spark, name)
    if mark is None:
        return False
    return mark not in {t.definition.uuid for t in all_dynamic(spark) if t.name.key == name.key}


def drop_left_over(spark: SparkSession, name: Name) -> None:
    """Drops a view of the name that `is_left_over`."""
    if is_left_over(spark, name):
        dynamic_session(spark).sql(f"DROP VIEW IF EXISTS {name.sql}")


def hidden_name(name: Name) -> Name:
    """Returns the name of the hidden stream of a dynamic table, which the ledger shows for its refreshes."""
    return Name(name.catalog, name.schema, f"{name.object}{HIDDEN_SUFFIX}")


def with_names(schema: Mapping[str, object], names: Sequence[str]) -> str:
    """Returns a schema (Spark's JSON) with other names for its columns, as text."""
    fields = schema["fields"]
    assert isinstance(fields, list)
    return json.dumps({**schema, "fields": [{**f, "name": n} for f, n in zip(fields, names, strict=True)]})


def _missing(spark: SparkSession, parts: Sequence[str], where: Mapping[str, int]) -> StreamqlError:
    """Returns the error DYNAMIC_TABLE_NOT_FOUND. Its hint names the table of that name in another schema, or the nearest name."""
    hint = ""
    with contextlib.suppress(StreamqlError):  # the parts are not a name
        hint = name_suggestion(qualify(spark, tuple(parts)), (t.name for t in all_dynamic(spark)), parts)
    return StreamqlError(
        "DYNAMIC_TABLE_NOT_FOUND",
        f"there is no dynamic table or materialized view {'.'.join(parts)}",
        hint=hint or "SHOW DYNAMIC TABLES and SHOW MATERIALIZED VIEWS list those there are",
        **where,
    )
