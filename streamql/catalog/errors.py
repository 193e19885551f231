"""Makes the error CATALOG_UNREADABLE, for each reason why a catalog cannot be read."""

from __future__ import annotations

from streamql import settings
from streamql.catalog import tables
from streamql.errors import StreamqlError


def log_unreadable(schema: str, path: str | None, why: str) -> StreamqlError:
    """Returns the error for a log that Delta or the storage cannot read. `path`: of the table of events; None: the table was not found."""
    return StreamqlError(
        "CATALOG_UNREADABLE",
        f"the log of the table {schema}.{tables.EVENTS} cannot be read: {why}",
        hint=f"check the newest files of {path or 'the table'}/_delta_log",
        path=path,
    )


def put_back(schema: str, path: str, known: int, version: int) -> StreamqlError:
    """Returns the error for a catalog whose version is lower than the one that this process knows."""
    return StreamqlError(
        "CATALOG_UNREADABLE",
        f"the catalog {path} went back from version {known} to {version}: it was put back from a copy",
        hint="what was consumed since would come again: ALTER STREAM … SET OFFSET for each stream that was, in a new process",
        schema=schema,
    )


def missing(schema: str, path: str) -> StreamqlError:
    """Returns the error for a table of events that existed, and no longer does."""
    return StreamqlError(
        "CATALOG_UNREADABLE",
        f"the table {schema}.{tables.EVENTS}, which keeps all streams, does not exist any longer: {path}",
        hint=f"put it back where it was; or DROP SCHEMA {schema} CASCADE, and create the streams again",
        schema=schema,
    )


def not_created(schema: str) -> StreamqlError:
    """Returns the error for a catalog that could not be created, because its name stands for something else."""
    return StreamqlError(
        "CATALOG_UNREADABLE",
        f"the catalog of streams could not be created: {schema}.{tables.EVENTS} is something else",
        hint=f"set {settings.CATALOG.key} to a schema that is not there yet",
        schema=schema,
    )


def of_other_version(schema: str, version: str | None) -> StreamqlError:
    """Returns the error for a table that this streamql cannot read. `version`: its version if a newer streamql wrote it; None: no streamql
    wrote it."""
    return StreamqlError(
        "CATALOG_UNREADABLE",
        f"the table {schema}.{tables.EVENTS} is not a catalog of streams that this streamql can read"
        + (f": its version is {version}" if version else ""),
        hint=("upgrade streamql, or " if version else "") + f"set {settings.CATALOG.key} to another schema",
    )


def altered(schema: str, what: str) -> StreamqlError:
    """Returns the error for a table of events whose columns were altered, so that no event can be written. `what`: the wrong column."""
    return StreamqlError(
        "CATALOG_UNREADABLE",
        f"the table {schema}.{tables.EVENTS} was altered: {what}, so that no event can be written",
        hint="write the table over itself, by overwriteSchema, with the column as it was; the streams in it stay",
    )
