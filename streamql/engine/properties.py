"""Translates the table properties of streamql (change_tracking, data_retention_days) into Delta's, for ALTER TABLE and CREATE TABLE."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamql.delta import neutral
from streamql.delta.jvm import is_conflict
from streamql.delta.names import qualify
from streamql.dialect import parse, quote_string
from streamql.dialect.statements import SetTableProperties
from streamql.engine.ddl import place_of
from streamql.engine.reads import named_table
from streamql.errors import StreamqlError
from streamql.registered import registered
from streamql.sources.tables.table import open_table

ATTEMPTS_MAX = 5
"""How often properties are set before a conflict with other writers is an error."""

_DELETION_VECTORS = "delta.enableDeletionVectors"
_DELETION_VECTORS_DEFAULT = "spark.databricks.delta.properties.defaults.enableDeletionVectors"


def set_table_properties(spark: SparkSession, statement: SetTableProperties) -> None:
    """Runs ALTER TABLE … SET PROPERTIES with streamql's keys: sets Delta's properties. Raises TABLE_NOT_FOUND, NOT_A_DELTA_TABLE,
    INVALID_PROPERTY."""
    where = place_of(statement.table_span)
    name = qualify(spark, statement.table)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        table = named_table(spark, name, where.get("line"), where.get("column"))
        current = open_table(spark, table).snapshot.configuration
        properties = _of_delta(statement, current)
        properties = {k: v for k, v in properties.items() if current.get(k) != v}
        if not properties:
            return
        try:
            neutral.run(spark, f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({_listed(properties)})")
            return
        except (Py4JJavaError, PySparkException) as e:  # another session may have set them, or written rows
            if attempt == ATTEMPTS_MAX or not is_conflict(e):
                raise


def created_properties(spark: SparkSession, given: str, provider: str) -> str | None:
    """Returns the properties that a new table gets, as JSON, with Delta's in place of streamql's. None: streamql's are not among them.

    `given`: the properties that the statement names, as JSON. `provider`: the format of the table. Raises NOT_A_DELTA_TABLE,
    INVALID_PROPERTY.
    """
    try:
        statement = parse(f"ALTER TABLE t SET TBLPROPERTIES ({_listed(json.loads(given))})")
        if not isinstance(statement, SetTableProperties):
            return None
        default = spark.conf.get(_DELETION_VECTORS_DEFAULT, None)
        properties = _of_delta(statement, {} if default is None else {_DELETION_VECTORS: default})
    except StreamqlError as e:  # without its place, which is one in the text above, and not in the user's statement
        raise StreamqlError(e.code, e.message, hint=e.hint) from None
    if provider.lower() != "delta":
        raise StreamqlError(
            "NOT_A_DELTA_TABLE",
            f"the new table has the format {provider}, and change tracking takes a Delta table",
            hint="CREATE TABLE … USING delta",
        )
    return json.dumps(properties)


def check_new_table(
    spark: SparkSession, parts: tuple[str, ...], properties: Mapping[str, str], fields: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse a table that a statement is about to make, if a feature knows that its properties do not go with its columns. `fields`: the
    columns, as Spark's JSON schema has them. Raises INVALID_PROPERTY."""
    name = str(qualify(spark, parts))
    for check in registered("new_table"):
        check(name, properties, fields)


def _of_delta(statement: SetTableProperties, current: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties of Delta that a statement asks for. `current`: the properties that the table has, or would get by default."""
    properties = dict(statement.others)
    if statement.change_tracking is not None:
        tracking = "true" if statement.change_tracking else "false"
        if properties.setdefault("delta.enableRowTracking", tracking) != tracking:
            raise StreamqlError(
                "INVALID_PROPERTY",
                "change_tracking is delta.enableRowTracking: they contradict each other here",
                hint=f"'change_tracking' = '{tracking}' alone",
                **place_of(statement.table_span),
            )
    if statement.change_tracking:
        properties.setdefault("delta.enableInCommitTimestamps", "true")
        if current.get(_DELETION_VECTORS) != "false":  # "false": a user has switched them off on purpose
            properties.setdefault(_DELETION_VECTORS, "true")
    if statement.data_retention_days is not None:
        days = f"interval {statement.data_retention_days} days"
        properties.setdefault("delta.deletedFileRetentionDuration", days)
        properties.setdefault("delta.logRetentionDuration", days)
    return properties


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{quote_string(k)} = {quote_string(v)}" for k, v in properties.items())
