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
    from streamql.features.dynamic.source.table import DynamicTable


def selected(spark: SparkSession, options: Options) -> Overview:
    """Return what the command line names; without names, what is in --database; without either, all streams and dynamic tables.

    Raises STREAM_NOT_FOUND, CATALOG_UNREADABLE.
    """
    from streamql.catalog.store import catalog_of
    from streamql.cli.status.overview import overview
    from streamql.console.sql.named_objects import use_database
    from streamql.delta.names import qualify
    from streamql.engine.status import warn_of_unreadable
    from streamql.features.dynamic.source.table import all_dynamic

    use_database(spark, options.database)
    warn_of_unreadable(spark)
    names: list[str] = options.arguments.names
    if names:
        return overview(spark, *_named(spark, names))
    if options.database is None:
        return overview(spark)
    here = qualify(spark, ("_",))
    place = (here.catalog, here.schema.lower())
    return overview(
        spark,
        [s for s in catalog_of(spark).all(spark) if (s.name.catalog, s.name.schema.lower()) == place],
        [t for t in all_dynamic(spark) if (t.name.catalog, t.name.schema.lower()) == place],
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


def rows_of(seen: Overview, options: Options) -> tuple[list[str], list[bool], list[tuple[object, ...]]]:
    """Records of the streams, or with --dynamic of the dynamic tables: names, which are numbers, and the rows."""
    from streamql.cli.status import lines as status_lines
    from streamql.features.dynamic import lines as dynamic_lines

    if options.arguments.dynamic:
        names = list(dynamic_lines.RECORD)
        rows = [tuple(dynamic_lines.record(facts).values()) for facts in seen.dynamic]
        return names, [name in dynamic_lines.NUMERIC for name in names], rows
    names = list(status_lines.RECORD)
    rows = [tuple(status_lines.record(stream).values()) for stream in seen.streams]
    return names, [name in status_lines.NUMERIC for name in names], rows
