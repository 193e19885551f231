"""The Delta table and the view that a dynamic table consists of: made, and dropped."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import cause_of
from streamql.delta.names import look_up, qualify, view_columns, view_property
from streamql.delta.neutral import dynamic_session
from streamql.delta.table import DeltaTable
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.features.dynamic.language.statements import CreateDynamicTable
from streamql.features.dynamic.source.analysis import analysed
from streamql.features.dynamic.source.graph import in_order, upstream
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
"""The property of the backing table and of the view: the id of the definition."""

_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
}

_STATE_OF_CONFLICTS = "2D521"
"""The SQLSTATE of Delta's errors for a commit that came after another one with which it cannot be reconciled."""

_UNMAPPED_NOT = frozenset(" ,;{}()\n\t=")
"""Characters that Delta takes in the name of a column only if names are mapped. Spark calls a column without a name `count(1)`."""


def need_dynamic(
    spark: SparkSession, parts: Sequence[str], *, is_view: bool | None, where: Mapping[str, int]
) -> DynamicTable:
    """Returns the dynamic table or materialized view that a statement names. `is_view`: which of the two the statement calls it; None:
    either. Raises DYNAMIC_TABLE_NOT_FOUND."""
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
    """Returns the stream whose consumptions are the refreshes of a table, as of now. Raises DYNAMIC_TABLE_NOT_FOUND if it was dropped
    meanwhile."""
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
    """For each dynamic table those that its query read at the last refresh, by the ids of their definitions."""
    tables = list(tables)
    catalog_of(spark).refresh(spark)  # once for all of them
    return upstream(tables, {t.definition.uuid: _ids(spark, t) for t in tables})


def _ids(spark: SparkSession, table: DynamicTable) -> frozenset[str]:
    state = catalog_of(spark).last_read(spark, table.stream_id)
    return frozenset() if state is None else frozenset(t.table_id for _, t in query_of(state).tables)


def check_acyclic(spark: SparkSession, table: DynamicTable, ids: Iterable[str], **where: int) -> None:
    """Raises UNSUPPORTED_SOURCE if a table reads itself. `ids`: of the Delta tables that its query reads now."""
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


def make_backing(spark: SparkSession, dynamic: DynamicTable, statement: CreateDynamicTable) -> TableSource:
    """Makes the empty Delta table that the rows will be in. Raises what Spark and Delta raise."""
    own = dynamic_session(spark)
    rows = analysed(own, dynamic, {}).rows({}).where("false")
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
    """Makes the view by which the rows are read. `comments`: of columns."""
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
    """Lets the view of the name show the rows, if a CREATE OR REPLACE that died has left it with those of the table before. `or_missing`:
    also makes a view that is not there."""
    mark = mark_of(spark, dynamic.name)
    if mark != dynamic.definition.uuid and (mark is not None or or_missing):
        make_view(spark, dynamic, {}, replace=mark is not None)


def take_types(spark: SparkSession, dynamic: DynamicTable, whole: DynamicQuery) -> bool:
    """Gives the backing table and the view the types of the query, before there are rows of these types. Returns False if another refresher
    did so at the same time, and this one is to begin anew."""
    try:
        if whole.widens:
            whole.widen(dynamic.backing.path)
    except SparkError as e:
        if cause_of(e).sql_state == _STATE_OF_CONFLICTS:
            return False
        raise
    _show_types(spark, dynamic)
    return True


def _show_types(spark: SparkSession, dynamic: DynamicTable) -> None:
    """Lets the view show the types that the columns have in the backing table: Spark casts the columns of a view to the types that it was
    made with. A refresh that died may have left it with these."""
    shown = view_columns(spark, dynamic.name)
    if shown is None or mark_of(spark, dynamic.name) != dynamic.definition.uuid:
        return
    backing = DeltaTable(spark, dynamic.backing.path)
    stored = {f.name.lower(): f.dataType.simpleString() for f in backing.schema(backing.latest()).fields}
    if any(f.dataType.simpleString() != stored.get(f.name.lower()) for f in shown.fields):
        make_view(spark, dynamic, comments_of(spark, dynamic), replace=True)


def comments_of(spark: SparkSession, dynamic: DynamicTable) -> dict[str, str | None]:
    """Returns the comments of the columns that a dynamic table shows."""
    if mark_of(spark, dynamic.name) != dynamic.definition.uuid:
        return {}
    shown = view_columns(spark, dynamic.name)
    return {f.name: f.metadata.get("comment") for f in shown.fields} if shown is not None else {}


def drop_parts(spark: SparkSession, dynamic: DynamicTable, *, view: bool = True) -> None:
    """Drops the view and the Delta table; what is not there, or belongs to another dynamic table, is left."""
    own = dynamic_session(spark)
    if view and mark_of(spark, dynamic.name) == dynamic.definition.uuid:
        own.sql(f"DROP VIEW IF EXISTS {dynamic.name.sql}")
    own.sql(f"DROP TABLE IF EXISTS {dynamic.backing.name.sql}")


def drop_unless_shown(spark: SparkSession, dynamic: DynamicTable) -> None:
    """Drops the parts of a table that others have dropped. If another table has the name, they are left: a CREATE OR REPLACE shows the old
    rows until it has its own, and puts them back if it fails."""
    if find_dynamic(spark, dynamic.name) is None:
        drop_parts(spark, dynamic)


def shown_names(spark: SparkSession) -> dict[str, str]:
    """Returns the names of dynamic tables by those that positions have for the tables of their rows."""
    return {part_of(t.backing): part_of(replace(t.backing, name=t.name)) for t in all_dynamic(spark)}


def mark_of(spark: SparkSession, name: Name) -> str | None:
    """Returns the id of the definition that a view was made for. None: there is no view of the name, or it is another one."""
    return view_property(spark, name, MARK)


def is_left_over(spark: SparkSession, name: Name) -> bool:
    """Returns whether a view of the name was made for a dynamic table whose CREATE, DROP or RENAME did not finish."""
    mark = mark_of(spark, name)
    if mark is None:
        return False
    return mark not in {t.definition.uuid for t in all_dynamic(spark) if t.name.key == name.key}


def drop_left_over(spark: SparkSession, name: Name) -> None:
    """Drops a view of the name that `is_left_over`."""
    if is_left_over(spark, name):
        dynamic_session(spark).sql(f"DROP VIEW IF EXISTS {name.sql}")


def hidden_name(name: Name) -> Name:
    """Returns what the ledger calls the refreshes of a dynamic table."""
    return Name(name.catalog, name.schema, f"{name.object}{HIDDEN_SUFFIX}")


def with_names(schema: Mapping[str, object], names: Sequence[str]) -> str:
    """Returns a query's columns, as Spark's JSON has them, under other names; as text."""
    fields = schema["fields"]
    assert isinstance(fields, list)
    return json.dumps({**schema, "fields": [{**f, "name": n} for f, n in zip(fields, names, strict=True)]})


def _missing(spark: SparkSession, parts: Sequence[str], where: Mapping[str, int]) -> StreamqlError:
    """DYNAMIC_TABLE_NOT_FOUND, with the one of that name in another schema, or the nearest one."""
    hint = ""
    with contextlib.suppress(StreamqlError):  # no name at all
        hint = name_suggestion(qualify(spark, tuple(parts)), (t.name for t in all_dynamic(spark)), parts)
    return StreamqlError(
        "DYNAMIC_TABLE_NOT_FOUND",
        f"there is no dynamic table or materialized view {'.'.join(parts)}",
        hint=hint or "SHOW DYNAMIC TABLES and SHOW MATERIALIZED VIEWS list those there are",
        **where,
    )
