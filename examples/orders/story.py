"""The story: what is run, in which order. The SQL is in the scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Row, SparkSession

from examples.flights.scripts import rows_of, run, script
from examples.flights.terminal import Terminal
from examples.orders import DIRECTORY, proofs
from examples.orders.consumer import killed_consumer
from examples.orders.events import Event
from examples.orders.producer import OrderProducer

STREAM_COLUMNS = ("name", "lag_versions", "has_data", "offset_version", "offset_position")
LEDGER_COLUMNS = ("stream", "target", "operation", "outcome", "rows", "seconds")


class Story:
    """A run of the demo over a fresh data directory and an empty topic."""

    def __init__(
        self, spark: SparkSession, terminal: Terminal, events: Sequence[Event], bootstrap: str, directory: Path
    ) -> None:
        self._spark = spark
        self._terminal = terminal
        self._events = events
        self._bootstrap = bootstrap
        self._directory = directory

    def tell(self) -> None:
        """All of it. Raises ProofFailed, DemoError, and what statements raise."""
        self._set_up()
        journal = Path(str(self._spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")) / "sent_messages"
        producer = OrderProducer(self._bootstrap, journal)
        half = len(self._events) // 2
        self._first_half(producer, self._events[:half])
        self._killed(producer, self._events[half:])
        self._look_back()

    # -- the chapters

    def _set_up(self) -> None:
        self._terminal.section(
            "Tables and streams",
            "An external table on the topic, a stream on it, and the tables that it will feed.",
        )
        self._run("topic", show=True)
        self._run("tables")

    def _first_half(self, producer: OrderProducer, events: Sequence[Event]) -> None:
        self._terminal.section(
            "Orders arrive",
            "A program sends the first half of the events. One transaction brings them into a log, a table of bad messages, and "
            "the table orders, which has one row an order. The stream on orders then feeds the summary.",
        )
        self._send(producer, events)
        self._table("The stream on the topic shows", self._quietly("what_came"))
        self._run("upsert", show=True)
        self._table("The stream on orders shows", self._quietly("what_changed"))
        self._run("summary", show=True)
        self._prove()

    def _killed(self, producer: OrderProducer, events: Sequence[Event]) -> None:
        self._terminal.section(
            "A consumer is killed",
            "The second half arrives, with changes of orders that the first half has. Another process, streamql run, consumes it, and "
            "gets SIGKILL when its first statement has committed. Then the same script is run again, here.",
        )
        self._send(producer, events)
        with self._terminal.step("streamql run 03_upsert.sql, killed", hint="starts a Spark of its own") as step:
            step.note = killed_consumer(self._spark, self._directory, script("upsert", DIRECTORY).path)
        self._run("upsert")
        self._table("The stream on orders shows", self._quietly("what_changed"))
        self._run("summary")
        self._prove()

    def _look_back(self) -> None:
        self._terminal.section("What streamql remembers", "The offset of each stream, and who took what.")
        self._table("SHOW STREAMS (some of its columns)", self._quietly("streams"), STREAM_COLUMNS)
        self._table("SELECT … FROM streamql.consumptions", self._quietly("ledger"), LEDGER_COLUMNS)

    # -- what the chapters are made of

    def _send(self, producer: OrderProducer, events: Sequence[Event]) -> None:
        with self._terminal.step("send order events") as step:
            step.note = f"{producer.send(events):,} messages"

    def _run(self, name: str, show: bool = False) -> None:
        """Runs a script; with `show`, prints its text first."""
        chosen = script(name, DIRECTORY)
        if show:
            self._terminal.sql(chosen.path, chosen.text)
        with self._terminal.step(chosen.shown) as step:
            touched = [rows[0].num_affected_rows for rows in run(self._spark, name, DIRECTORY) if _is_count(rows)]
            step.note = f"{sum(touched):,} rows" if touched else ""

    def _quietly(self, name: str) -> list[Row]:
        """Runs a script without a line of its own; the rows of its last statement."""
        with self._terminal.spinner(script(name, DIRECTORY).path.name):
            return rows_of(self._spark, name, DIRECTORY)

    def _prove(self) -> None:
        with self._terminal.spinner("prove"):
            claims = [proofs.arrived_once(self._spark), proofs.orders(self._spark), proofs.summary(self._spark)]
        self._terminal.prove(claims)

    def _table(self, title: str, rows: Sequence[Row], columns: Sequence[str] = ()) -> None:
        names = columns or (rows[0].__fields__ if rows else ())
        self._terminal.table(title, names, [[row[name] for name in names] for row in rows], "nothing")


def _is_count(rows: Sequence[Row]) -> bool:
    return bool(rows) and "num_affected_rows" in rows[0]
