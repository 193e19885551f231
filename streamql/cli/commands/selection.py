"""The streams and dynamic tables that `streamql streams`, `watch` and `report` show."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamql.console.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState
    from streamql.cli.status.overview import Overview
    from streamql.console.status import Listing
    from streamql.features.dynamic.source.table import DynamicTable


def selected(spark: SparkSession, options: Options) -> Overview:
    """Return what the command line names; without names, what is in --database; without either, everything.

    Raises STREAM_NOT_FOUND, CATALOG_UNREADABLE.
    """
    from streamql.catalog.store import catalog_of
    from streamql.cli.status.overview import overview
    from streamql.console.sql.named_objects import use_database
    from streamql.delta.names import qualify
    from streamql.engine.status import warn_of_unreadable
    from streamql.features.dynamic.source.table import all_dynamic
    from streamql.features.tasks.runs.store import all_tasks

    use_database(spark, options.database)
    warn_of_unreadable(spark)
    names: list[str] = options.arguments.names
    if names:
        return overview(spark, *_named(spark, names), tasks=())
    if options.database is None:
        return overview(spark)
    here = qualify(spark, ("_",))
    return overview(
        spark,
        [s for s in catalog_of(spark).all(spark) if s.name.is_in(here.catalog, here.schema)],
        [t for t in all_dynamic(spark) if t.name.is_in(here.catalog, here.schema)],
        [t for t in all_tasks(spark) if t.name.is_in(here.catalog, here.schema)],
    )


def _named(spark: SparkSession, names: Sequence[str]) -> tuple[list[StreamState], list[DynamicTable]]:
    """Returns the streams and the dynamic tables of these names. Raises STREAM_NOT_FOUND if a name is neither's, SYNTAX_ERROR."""
    from streamql.delta.names import qualify
    from streamql.dialect import parse_name
    from streamql.engine.reads import need_stream
    from streamql.features.dynamic.source.table import find_dynamic

    streams: list[StreamState] = []
    tables: list[DynamicTable] = []
    for name in names:
        parts = parse_name(name)
        table = find_dynamic(spark, qualify(spark, parts))
        if table is not None:
            tables.append(table)
        else:
            streams.append(need_stream(spark, parts))
    return streams, tables


def names_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """Adds the arguments that choose what a command shows. `verb`: what it does with them."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"streams and dynamic tables to {verb} (all, or all of --database)"
    )
    parser.add_argument("--dynamic", action="store_true", help="records of dynamic tables, not of streams")


def chosen_listing(seen: Overview, options: Options) -> Listing:
    """Returns what records are shown of: the streams, or with --dynamic the dynamic tables."""
    return seen.dynamic_listing if options.arguments.dynamic else seen.stream_listing
