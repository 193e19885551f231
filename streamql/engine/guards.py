"""Refuses commands of Spark on names of streams, external tables and dynamic tables, and on the catalog."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.catalog.stored import stored_tables
from streamql.catalog.tables import EVENTS, view_names
from streamql.delta.names import SESSION_CATALOG, qualify
from streamql.engine.reads import find_stream
from streamql.errors import StreamqlError, counted
from streamql.names import Name
from streamql.settings import CATALOG, CATALOG_GUARD, choice, text
from streamql.sources.definitions import Definition, DefinitionType

log = logging.getLogger("streamql")


def guard(spark: SparkSession, command: str, parts: tuple[str, ...]) -> None:
    """Refuses a command on a table or view if a stream or a definition has its name. Refuses one on a schema that has such an object.
    Refuses commands on the catalog, too. Raises NAME_ALREADY_IN_USE, UNSUPPORTED_TARGET."""
    try:
        _guard_catalog(spark, command, parts)
        _guard(spark, command, parts)
    except StreamqlError as e:
        if e.code != "CATALOG_UNREADABLE":
            raise
        # The command runs: tables can be created and dropped without the catalog, and dropping a broken catalog is a way to recover.
        log.warning("whether a stream has this name could not be looked up: %s", e.message)


_WRITES = frozenset(("INSERT INTO", "INSERT OVERWRITE", "UPDATE", "DELETE FROM", "MERGE INTO", "TRUNCATE TABLE"))
_ALTERS = frozenset(("ALTER TABLE", "ALTER VIEW"))


def _guard_catalog(spark: SparkSession, command: str, parts: tuple[str, ...]) -> None:
    """Refuses a command on the catalog's schema, table or views. Raises CATALOG_UNREADABLE for a catalog that cannot be read, which may be
    dropped to recover."""
    schema = text(spark, CATALOG).lower()
    catalog = catalog_of(spark)
    if command.startswith("DROP SCHEMA"):
        is_meant, what = parts[-1].lower() == schema, f"schema {parts[-1]}"
    else:
        try:
            name = qualify(spark, parts)
        except StreamqlError:  # the parts are not a name
            return
        of_schema = name.catalog == SESSION_CATALOG and name.schema.lower() == schema
        is_meant = of_schema and name.object.lower() in (EVENTS, *view_names())
        is_meant = is_meant or (name.schema.lower() == "delta" and name.object == catalog.path)
        what = str(name)
    if not is_meant or choice(spark, CATALOG_GUARD) == "false":
        return
    catalog.refresh(spark)
    if catalog.path:
        raise StreamqlError(
            "UNSUPPORTED_TARGET",
            f"{command}: {what} holds the streams, their offsets and the ledger, and only streamql writes it",
            hint="SELECT reads it; CREATE, ALTER and DROP STREAM change streams. "
            f"To repair or remove the catalog: SET {CATALOG_GUARD.key} = false",
        )


def _guard(spark: SparkSession, command: str, parts: tuple[str, ...]) -> None:
    catalog = catalog_of(spark)
    if command.startswith("DROP SCHEMA"):
        schema = parts[-1].lower()
        inside = [str(s.name) for s in catalog.all(spark) if s.name.schema.lower() == schema]
        types = [type_ for type_ in DefinitionType if type_ is not DefinitionType.CONNECTION]
        tables = [t for type_ in types for t in catalog.definitions(spark, type_) if t.name.schema.lower() == schema]
        external = [str(t.name) for t in tables]
        if inside or external:
            held = [("stream", len(inside)), *((t.value, sum(d.type is t for d in tables)) for t in types)]
            counts = [counted(n, what) for what, n in held if n]
            drops = [f"DROP STREAM {n}" for n in inside] + [f"DROP {t.type.value.upper()} {t.name}" for t in tables]
            raise StreamqlError(
                "NAME_ALREADY_IN_USE",
                f"schema {parts[-1]} holds {' and '.join(counts)}, e.g. {(inside + external)[0]}",
                hint="; ".join(drops[:3]) + (" …" if len(drops) > 3 else ""),
                streams=inside,
            )
        return
    state = find_stream(spark, parts)
    if state is None:
        _guard_definition(spark, command, parts)
        return
    hint = (
        f"DROP STREAM {state.name}"
        if command.startswith("DROP")
        else f"choose another name, or DROP STREAM {state.name} first"
    )
    raise StreamqlError("NAME_ALREADY_IN_USE", f"{command}: {state.name} is a stream", hint=hint, name=str(state.name))


def _guard_definition(spark: SparkSession, command: str, parts: tuple[str, ...]) -> None:
    try:
        name = qualify(spark, parts)
        table = catalog_of(spark).definition(spark, name) or _stored_in(spark, name)
    except StreamqlError as e:
        if e.code == "SCHEMA_NOT_FOUND":  # the parts are not a name
            return
        raise
    if table is not None:
        if command in _WRITES and table.type.is_relation:
            raise StreamqlError(
                "UNSUPPORTED_TARGET",
                f"{command}: {table.name} is a {table.type.value}, which only its refreshes may write",
                hint=f"write into the tables that its query reads, then REFRESH {table.type.value.upper()} {table.name}",
                name=str(table.name),
            )
        drop = f"DROP {table.type.value.upper()} {table.name}"
        hint = drop if command.startswith("DROP") else f"choose another name, or {drop} first"
        if command in _ALTERS and name.key == table.name.key and table.type is not DefinitionType.EXTERNAL_TABLE:
            statement = f"{table.type.value.upper()} {table.name}"
            hint = f"ALTER {statement} …; or CREATE OR REPLACE {statement}, which takes other columns"
        article = "an" if table.type is DefinitionType.EXTERNAL_TABLE else "a"
        what = f"is {article} {table.type.value}" if name.key == table.name.key else f"holds the rows of {table.name}"
        message = f"{command}: {name} {what}"
        raise StreamqlError("NAME_ALREADY_IN_USE", message, hint=hint, name=str(table.name))


def _stored_in(spark: SparkSession, name: Name) -> Definition | None:
    """Returns the definition of the dynamic table whose backing table has a name. None: it is not a backing table."""
    return next((t.definition for t in stored_tables(spark) if t.table.name.key == name.key), None)
