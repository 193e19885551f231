"""Streams and dynamic tables, live: what `streamql streams` shows, looked at again every few seconds;
those with trouble come first.

At a terminal one screen is kept up to date, cut to its size: 80 columns are enough, from 120 on
sources and targets are shown too. Elsewhere (a pipe, a log) each status is printed: a line with
the time, then a line a stream and dynamic table. With --output json, csv, tsv or markdown it is a
record a stream, or with --dynamic a record a dynamic table. The records have the names of streamql
streams, and before them the time of the status (`at`).
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from streamql.cli.commands.selection import names_arguments
from streamql.console.argument_types import number, seconds
from streamql.console.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.cli.status.overview import Overview

EVERY_DEFAULT = "5s"

EPILOG = """\
examples:
  streamql watch                                  every 5 seconds, until Ctrl-C
  streamql watch --every 1min sales.orders_st     one stream
  streamql watch --output json --every 1min >> streams.jsonl
  streamql watch --dynamic --output csv           dynamic tables
  streamql watch --times 3                        three updates

exit codes:
  0    left with Ctrl-C or SIGTERM, or after --times updates
  1    the catalog cannot be read, or what was named is not there
  2    the command line is wrong, or there is no data directory
  130  Ctrl-C while Spark starts        141  the reader of the output went away (| head)
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    add = parser.add_argument
    names_arguments(parser, "watch")
    add(
        "--every",
        metavar="TIME",
        type=seconds,
        default=EVERY_DEFAULT,
        help="time between updates: 500ms, 5s, 1min (5s)",
    )
    add("--times", metavar="N", type=number, default=None, help="end after N updates")


def run(spark: SparkSession, options: Options) -> int:
    """Looks and shows until Ctrl-C or --times. Raises STREAM_NOT_FOUND, CATALOG_UNREADABLE."""
    from streamql.cli.commands.selection import selected
    from streamql.console.sql.worker import Worker

    given = options.arguments
    shown = 0
    # A terminal that is left without a word keeps the other screen, and no cursor.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if _is_main() else None
    worker = Worker()  # Ctrl-C in the middle of a question to the JVM would leave its connection unusable
    try:
        context, show = _screen(options)
        with context:
            while True:
                task = worker.start(lambda: selected(spark, options))
                while not task.wait(60.0):
                    pass
                show(task.result())
                shown += 1
                if shown == given.times:
                    return 0
                time.sleep(given.every)
    except KeyboardInterrupt:
        return 0
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _screen(options: Options) -> tuple[AbstractContextManager[object], Callable[[Overview], None]]:
    """Returns what to keep open while watching, and what shows an update."""
    every: float = options.arguments.every
    if options.output != "table":
        return nullcontext(), _records(options)
    if not sys.stdout.isatty():
        return nullcontext(), _print_lines
    from rich.console import Console
    from rich.live import Live

    from streamql.cli.status.screen import screen

    console = Console(highlight=False)
    live = Live(console=console, auto_refresh=False, screen=True, redirect_stdout=False, redirect_stderr=False)

    def show(seen: Overview) -> None:
        size = console.size
        live.update(screen(seen, size.width, size.height, every), refresh=True)

    return live, show


def _print_lines(seen: Overview) -> None:
    from streamql.console.render import quantities, records
    from streamql.console.render.grid import clean

    texts = [f"{quantities.clock(seen.at_ms)}  {seen.summary}"]
    for listing in seen.listings:
        labels = [listing.subject.label(field) for field in ("lag", "amount", "deadline", "last")]
        for line in listing.lines:
            said = zip(labels, (line.lag, line.amount, line.deadline, line.last), strict=True)
            facts = [*(f"{label} {text}" for label, text in said if text), *([line.trouble] if line.trouble else [])]
            texts.append(clean(f"  {line.name}  {line.state}  {'; '.join(facts)}"))
    records.say(texts)


def _records(options: Options) -> Callable[[Overview], None]:
    """Shows records; the header of csv, tsv and markdown once."""
    from streamql.cli.commands.selection import chosen_listing
    from streamql.console.render import quantities, records

    is_first = True

    def show(seen: Overview) -> None:
        nonlocal is_first
        names, numeric, found = chosen_listing(seen, options).records()
        rows = [(quantities.clock(seen.at_ms), *row) for row in found]
        records.write(options.output, ["at", *names], [False, *numeric], rows, header=is_first)
        is_first = False

    return show
