"""The storage connections of external tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.errors import StreamqlError
from streamql.misspelt import suggestion
from streamql.sources.definitions import Definition, DefinitionType, connection_name


def need_connection(spark: SparkSession, name: str, place: Mapping[str, int], used_by: str = "") -> Definition:
    """Returns the connection of a name. `used_by`: what needs it, for the error; empty: a statement names it. Raises
    CONNECTION_NOT_FOUND, with the nearest name if a statement has named it, at its `place` there."""
    catalog = catalog_of(spark)
    found = catalog.definition(spark, connection_name(name), DefinitionType.CONNECTION)
    if found is None:
        known = [] if used_by else [d.name.object for d in catalog.definitions(spark, DefinitionType.CONNECTION)]
        raise StreamqlError(
            "CONNECTION_NOT_FOUND",
            f"there is no storage connection {name}" + (f", which {used_by} uses" if used_by else ""),
            hint=suggestion(name, known)
            or f"CREATE STORAGE CONNECTION {name} TYPE KAFKA BOOTSTRAP_SERVERS = ['host:9092']; SHOW CONNECTIONS lists those there are",
            connection=name,
            **place,
        )
    return found
