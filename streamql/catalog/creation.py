"""Makes the catalog: its schema, its table of events, and the views for people."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamql.catalog import tables
from streamql.delta.jvm import session_of
from streamql.delta.names import schema_exists, tables_of
from streamql.names import quote

TABLE_DEFAULTS = "spark.databricks.delta.properties.defaults."
"""Settings that give new tables properties."""


def create(spark: SparkSession, schema: str, path: str | None) -> None:
    """All that is not there yet; `path`: of a catalog that is shared by it. Raises Spark's own errors, also where two do so at once."""
    own = quiet_clone(spark)
    for default in [key for key in own.conf.getAll if key.startswith(TABLE_DEFAULTS)]:
        own.conf.unset(default)  # they are for people's tables; events are written by the columns' plain names, for one
    _create_schema(own, schema)
    own.sql(tables.create_events(schema, path))
    _create_views(own, schema, path)


def create_views(spark: SparkSession, schema: str, path: str | None) -> None:
    """The views alone, in the session's metastore."""
    own = quiet_clone(spark)
    _create_schema(own, schema)
    _create_views(own, schema, path)


def lacks_views(spark: SparkSession, schema: str) -> bool:
    """Whether the session's metastore has not both of the views."""
    if not schema_exists(spark, "spark_catalog", schema):
        return True
    return not {tables.STREAMS, tables.CONSUMPTIONS} <= set(tables_of(spark, "spark_catalog", schema))


def _create_schema(own: SparkSession, schema: str) -> None:
    if not schema_exists(own, "spark_catalog", schema):
        own.sql(f"CREATE SCHEMA IF NOT EXISTS {quote('spark_catalog')}.{quote(schema)}")


def _create_views(own: SparkSession, schema: str, path: str | None) -> None:
    own.sql(tables.create_streams_view(schema, path))
    own.sql(tables.create_consumptions_view(schema, path))


def quiet_clone(spark: SparkSession) -> SparkSession:
    """A session of the same settings whose changes nobody sees."""
    return SparkSession(spark.sparkContext, session_of(spark).cloneSession())
