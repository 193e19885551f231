"""The streams that `streamql streams`, `watch` and `report` show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamql.cli.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.engine.overview import Overview


def selected(spark: SparkSession, options: Options) -> Overview:
    """Return the streams that the command line names; without names, those of --database; without either, all.

    Raises STREAM_NOT_FOUND, CATALOG_UNREADABLE.
    """
    from streamql.catalog.store import catalog_of
    from streamql.cli.sql.named_objects import streams_named, use_database
    from streamql.delta.names import qualify
    from streamql.engine.overview import overview
    from streamql.engine.status import warn_of_unreadable

    use_database(spark, options.database)
    warn_of_unreadable(spark)
    names: list[str] = options.arguments.names
    if names:
        return overview(spark, streams_named(spark, names))
    if options.database is None:
        return overview(spark)
    here = qualify(spark, ("_",))
    place = (here.catalog, here.schema.lower())
    return overview(
        spark, [s for s in catalog_of(spark).all(spark) if (s.name.catalog, s.name.schema.lower()) == place]
    )
