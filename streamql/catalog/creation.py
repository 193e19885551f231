"""Creates the catalog: its schema, its table of events, and the views for users."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamql.catalog import tables
from streamql.delta.names import schema_exists, view_text
from streamql.delta.neutral import neutral_clone
from streamql.names import quote


def create(spark: SparkSession, schema: str, path: str | None) -> None:
    """Creates whatever is missing. `path`: of the table of events, if the catalog is shared by its path. Raises Spark's own errors, also if
    another process creates the same objects at the same time."""
    own = neutral_clone(spark)
    _create_schema(own, schema)
    own.sql(tables.create_events(schema, path))
    _create_views(own, schema, path)


def create_views(spark: SparkSession, schema: str, path: str | None, *, replace: bool = False) -> None:
    """Creates only the views, in the session's metastore: those that are missing or outdated, or, with `replace`, all of them."""
    own = neutral_clone(spark)
    _create_schema(own, schema)
    _create_views(own, schema, path, replace)


def replace_outdated_views(spark: SparkSession, schema: str, path: str | None) -> None:
    """Replaces the views that an earlier streamql created. A missing view is not created, because an operator may have dropped it."""
    outdated = [view for view, is_outdated in _wanting(spark, schema, path).items() if is_outdated]
    own = neutral_clone(spark) if outdated else spark
    columns = _optional_columns(own, schema, path) if outdated else frozenset()
    for view in outdated:
        own.sql(tables.create_view(schema, path, view, columns, replace=True))


def lacks_views(spark: SparkSession, schema: str, path: str | None) -> bool:
    """Returns whether one of the views is missing from the session's metastore, or was created by an earlier streamql."""
    if not schema_exists(spark, "spark_catalog", schema):
        return True
    return bool(_wanting(spark, schema, path))


def _wanting(spark: SparkSession, schema: str, path: str | None) -> dict[str, bool]:
    """Returns the views to create: {name of the view: whether an outdated one exists}. A view over the events of another catalog is not
    touched."""
    events, wanting = tables.events_name(schema, path), {}
    for view, (_, query) in tables.views(schema, path, _optional_columns(spark, schema, path)).items():
        text = view_text(spark, schema, view)
        if text is None or (text != query and events in text):
            wanting[view] = text is not None
    return wanting


def _optional_columns(spark: SparkSession, schema: str, path: str | None) -> frozenset[str]:
    """Returns which of the optional columns the table of events has. The table of an earlier streamql lacks some."""
    there = spark.table(tables.events_name(schema, path)).columns
    return frozenset(name for name, _ in tables.OPTIONAL_COLUMNS if name in there)


def _create_schema(own: SparkSession, schema: str) -> None:
    if not schema_exists(own, "spark_catalog", schema):
        own.sql(f"CREATE SCHEMA IF NOT EXISTS {quote('spark_catalog')}.{quote(schema)}")


def _create_views(own: SparkSession, schema: str, path: str | None, replace: bool = False) -> None:
    columns = _optional_columns(own, schema, path)
    every = tables.views(schema, path, columns)
    wanting = dict.fromkeys(every, True) if replace else _wanting(own, schema, path)
    for view, is_there in wanting.items():
        own.sql(tables.create_view(schema, path, view, columns, replace=is_there))
