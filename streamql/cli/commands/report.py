"""One page of HTML that shows streams, dynamic tables and tasks: lag and consumption over time,
changes by type, when streams go stale, and one picture of all, with the tables between them.

The page is a single file, light or dark as the reader's system is. It loads nothing and runs no
script, so it can be mailed, archived or put on any web server. Only what is in the sources' logs
and in the ledger (streamql.consumptions) is asked; nothing is consumed.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console.argument_types import seconds
from streamql.console.options import Options, path_text
from streamql.errors import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USAGE = 2

EPILOG = """\
examples:
  streamql report streams.html                        all streams, since the ledger's first entry
  streamql report streams.html --since 7d             the last week
  streamql report - sales.orders_st > orders.html     one stream, to stdout

exit codes:
  0  written
  1  what was named is not there, or the catalog cannot be read
  2  the command line is wrong, the file cannot be written, or there is no data directory
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    add = parser.add_argument
    add(
        "file",
        metavar="FILE.html",
        type=path_text,
        help="where the page goes, in the place of what is there; - is stdout",
    )
    add("names", nargs="*", metavar="NAME", help="streams and dynamic tables to show (all, or all of --database)")
    add(
        "--since",
        metavar="TIME",
        type=seconds,
        help="how far back charts go at most: 12h, 7d (all that the ledger has)",
    )


def check(options: Options) -> str | None:
    """Says what is wrong with the file, before Spark starts."""
    name = options.arguments.file
    path = Path(name).expanduser()
    if name == "-":
        return None
    if path.is_dir():
        return f"{name} is a directory; report takes the name of a file"
    return None if path.absolute().parent.is_dir() else f"cannot write {name}: there is no directory {path.parent}"


def run(spark: SparkSession, options: Options) -> int:
    """Writes the page. Raises STREAM_NOT_FOUND, CATALOG_UNREADABLE."""
    from streamql.cli.commands.selection import selected
    from streamql.cli.html.model import PARTS, Report, window_of
    from streamql.cli.html.page import render
    from streamql.engine import ledger

    seen = selected(spark, options)
    since = options.arguments.since
    first = ledger.first_ms(spark, [stream.uuid for stream in seen.streams])
    window = window_of(first, seen.at_ms, None if since is None else int(since * 1000))
    history = ledger.history(spark, window.since_ms, window.until_ms, PARTS)
    violated = ledger.violations(spark, window.since_ms, window.until_ms)
    page = render(Report(seen, window, history, ledger.flows(spark), violated)).encode("utf-8", "replace")
    name = options.arguments.file
    if name == "-":
        sys.stdout.buffer.write(page)
        sys.stdout.flush()
        return 0
    try:
        _put(Path(name).expanduser(), page)
    except OSError as e:
        print(f"error: cannot write {name}: {e.strerror}", file=sys.stderr)
        return USAGE
    tables = f", {counted(len(seen.dynamic), 'dynamic table')}" if seen.dynamic else ""
    if not options.silent:
        print(f"{name}: {counted(len(seen.streams), 'stream')}{tables}, {len(page) / 1024:.0f} KB", file=sys.stderr)
    return 0


def _put(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all: who reads the old page meanwhile, a web server perhaps, never sees half of one. A link stays one,
    and a device or pipe is written into."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
