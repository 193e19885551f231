"""Commands of Spark's that streams and external tables stand in the way of."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.delta.names import qualify
from streamql.engine.reads import find_stream
from streamql.errors import StreamqlError, counted
from streamql.sources.definitions import DefinitionType

log = logging.getLogger("streamql")


def guard(spark: SparkSession, command: str, parts: tuple[str, ...]) -> None:
    """Refuses a command on a table, view or schema if a stream or an external table has the name, or is in the schema. Raises
    NAME_ALREADY_IN_USE."""
    try:
        _guard(spark, command, parts)
    except StreamqlError as e:
        if e.code != "CATALOG_UNREADABLE":
            raise
        # Tables can still be made and dropped; dropping what is left of the catalog is a way to recover.
        log.warning("whether a stream has this name could not be looked up: %s", e.message)


def _guard(spark: SparkSession, command: str, parts: tuple[str, ...]) -> None:
    catalog = catalog_of(spark)
    if command.startswith("DROP SCHEMA"):
        schema = parts[-1].lower()
        inside = [str(s.name) for s in catalog.all(spark) if s.name.schema.lower() == schema]
        tables = catalog.definitions(spark, DefinitionType.EXTERNAL_TABLE)
        external = [str(t.name) for t in tables if t.name.schema.lower() == schema]
        if inside or external:
            counts = [counted(len(n), what) for n, what in ((inside, "stream"), (external, "external table")) if n]
            drops = [f"DROP STREAM {n}" for n in inside] + [f"DROP EXTERNAL TABLE {n}" for n in external]
            raise StreamqlError(
                "NAME_ALREADY_IN_USE",
                f"schema {parts[-1]} holds {' and '.join(counts)}, e.g. {(inside + external)[0]}",
                hint="; ".join(drops[:3]) + (" …" if len(drops) > 3 else ""),
                streams=inside,
            )
        return
    state = find_stream(spark, parts)
    if state is None:
        _guard_external_table(spark, command, parts)
        return
    hint = (
        f"DROP STREAM {state.name}"
        if command.startswith("DROP")
        else f"choose another name, or DROP STREAM {state.name} first"
    )
    raise StreamqlError("NAME_ALREADY_IN_USE", f"{command}: {state.name} is a stream", hint=hint, name=str(state.name))


def _guard_external_table(spark: SparkSession, command: str, parts: tuple[str, ...]) -> None:
    try:
        table = catalog_of(spark).definition(spark, qualify(spark, parts))
    except StreamqlError as e:
        if e.code == "SCHEMA_NOT_FOUND":  # no name at all
            return
        raise
    if table is not None:
        drop = f"DROP EXTERNAL TABLE {table.name}"
        hint = drop if command.startswith("DROP") else f"choose another name, or {drop} first"
        message = f"{command}: {table.name} is an external table"
        raise StreamqlError("NAME_ALREADY_IN_USE", message, hint=hint, name=str(table.name))
