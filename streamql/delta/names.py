"""Looks names up in the catalogs of a session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from streamql.delta.jvm import scala, session_of
from streamql.errors import StreamqlError
from streamql.model import TableSource
from streamql.names import Name

SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class Found:
    """What a name stands for. `type`: delta, managed (a Delta table whose commits go through its catalog), view, other (a table of another
    format) or missing. `path` and `table_id`: of a Delta table."""

    type: str
    path: str = ""
    table_id: str = ""
    columns: tuple[str, ...] = ()
    provider: str = ""


def look_up(spark: SparkSession, name: Name) -> Found:
    """Returns what a name stands for."""
    answer = json.loads(
        scala(spark).statements.Names.identify(session_of(spark), name.catalog, name.schema, name.object)
    )
    return Found(
        answer["type"],
        answer.get("path", ""),
        answer.get("tableId", ""),
        tuple(answer.get("columns", ())),
        answer.get("provider", ""),
    )


def tables_like(spark: SparkSession, pattern: str) -> list[Name]:
    """Returns the tables and views in all schemas of the session catalog whose names match a pattern, in which `*` stands for any
    letters."""
    found = scala(spark).statements.Names.tablesLike(session_of(spark), pattern)
    return [Name(SESSION_CATALOG, schema, table) for schema, table in found]


def moved(spark: SparkSession, tables: Iterable[TableSource]) -> set[TableSource]:
    """Returns the tables whose names now stand for no table, or for one at another path. If a catalog does not answer, none of its tables
    is returned. Reads no logs."""
    asked = list(tables)
    names = json.dumps([[*t.name.parts, t.path] for t in asked])
    answer = scala(spark).statements.Names.haveMoved(session_of(spark), names)
    return {table for table, has_moved in zip(asked, answer, strict=True) if has_moved}


def qualify(spark: SparkSession, parts: tuple[str, ...]) -> Name:
    """Returns the full name that 1 to 3 parts stand for in this session. Raises SCHEMA_NOT_FOUND for more parts or an unknown catalog."""
    current = list(scala(spark).statements.Names.current(session_of(spark)))
    if len(parts) == 1:
        return Name(current[0], current[1] if len(current) > 1 else "default", parts[0])
    if len(parts) == 2:
        return Name(current[0], parts[0], parts[1])
    if len(parts) == 3 and scala(spark).statements.Names.isCatalog(session_of(spark), parts[0]):
        # Spark ignores the case of the name of its session catalog, and of no other.
        is_session_catalog = parts[0].lower() == SESSION_CATALOG
        return Name(SESSION_CATALOG if is_session_catalog else parts[0], parts[1], parts[2])
    raise StreamqlError(
        "SCHEMA_NOT_FOUND", f"{'.'.join(parts)} names no catalog, schema and object", hint="use catalog.schema.object"
    )


def columns_of(spark: SparkSession, parts: tuple[str, ...]) -> Sequence[str]:
    """Returns the columns of a table; empty if it does not exist, which Spark's own error will say later."""
    try:
        return look_up(spark, qualify(spark, parts)).columns
    except StreamqlError:
        return ()


def schema_exists(spark: SparkSession, catalog: str, schema: str) -> bool:
    """Returns whether a catalog has a schema of that name."""
    return bool(scala(spark).statements.Names.schemaExists(session_of(spark), catalog, schema))


def schema_location(spark: SparkSession, schema: str) -> str | None:
    """Returns the location of a schema of the session catalog; None: there is no such schema."""
    location = scala(spark).statements.Names.schemaLocation(session_of(spark), schema)
    return None if location is None else str(location)


def view_text(spark: SparkSession, schema: str, view: str) -> str | None:
    """Returns the text of a view of the session catalog; None: there is no such view."""
    text = scala(spark).statements.Names.viewText(session_of(spark), schema, view)
    return None if text is None else str(text)


def view_property(spark: SparkSession, name: Name, key: str) -> str | None:
    """Returns a property of a view of the session catalog; None: there is no such view, or it lacks the property."""
    if name.catalog != SESSION_CATALOG:
        return None
    value = scala(spark).statements.Names.viewProperty(session_of(spark), name.schema, name.object, key)
    return None if value is None else str(value)


def view_columns(spark: SparkSession, name: Name) -> StructType | None:
    """Returns the stored columns of a view of the session catalog, without analysing its text. None: there is no such view."""
    if name.catalog != SESSION_CATALOG:
        return None
    found = scala(spark).statements.Names.viewColumns(session_of(spark), name.schema, name.object)
    return None if found is None else StructType.fromJson(json.loads(found))


def is_temporary_view(spark: SparkSession, name: Name) -> bool:
    """Returns whether a name stands for a temporary view of the session (by its last part), or for a global one (by its last two)."""
    return bool(scala(spark).statements.Names.isTemporaryView(session_of(spark), name.schema, name.object))


SCHEMAS_MAX = 200
"""In how many schemas a name is looked for if the current schema does not have it."""


def schemas_with(spark: SparkSession, table: str) -> list[str]:
    """Returns the schemas that have a table or view of a name, among the first SCHEMAS_MAX of the session catalog."""
    return list(scala(spark).statements.Names.schemasWith(session_of(spark), table, SCHEMAS_MAX))


def tables_of(spark: SparkSession, catalog: str, schema: str) -> list[str]:
    """Returns the names of the tables in a schema."""
    return list(scala(spark).statements.Names.tables(session_of(spark), catalog, schema))
