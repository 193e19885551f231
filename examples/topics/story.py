"""How the story of an example is told: scripts, tables, proofs. The SQL is in the scripts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from pyspark.sql import Row, SparkSession

from examples.flights.proofs import Proof
from examples.flights.scripts import rows_of, run, script
from examples.flights.terminal import Terminal
from examples.topics import DIRECTORY
from examples.topics.consumer import killed_consumer
from examples.topics.producer import Event, JournalProducer

STREAM_COLUMNS = ("name", "lag_versions", "has_data", "offset_version", "offset_position")
LEDGER_COLUMNS = ("stream", "target", "operation", "outcome", "rows", "seconds")


class Story(ABC):
    """A run of a demo over a fresh data directory and an empty topic. `scripts`: where its scripts are. `topic`: of Kafka."""

    scripts: ClassVar[Path]
    topic: ClassVar[str]

    def __init__(
        self, spark: SparkSession, terminal: Terminal, events: Sequence[Event], bootstrap: str, directory: Path
    ) -> None:
        self._spark = spark
        self._terminal = terminal
        self._events = events
        self._directory = directory
        warehouse = str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
        self._producer = JournalProducer(bootstrap, self.topic, Path(warehouse) / "sent_messages")

    @abstractmethod
    def tell(self) -> None:
        """All of it. Raises ProofFailed, DemoError, and what statements raise."""

    @abstractmethod
    def _claims(self) -> Iterable[Proof]:
        """What is proved after each half of the events."""

    def _send(self, events: Sequence[Event]) -> None:
        with self._terminal.step("send events") as step:
            step.note = f"{self._producer.send(events):,} messages"

    def _run(self, name: str, show: bool = False) -> None:
        """Runs a script; with `show`, prints its text first."""
        with self._terminal.running(script(name, self.scripts), show=show) as step:
            touched = [rows[0].num_affected_rows for rows in run(self._spark, name, self.scripts) if _is_count(rows)]
            step.note = f"{sum(touched):,} rows" if touched else ""

    def _quietly(self, name: str, directory: Path | None = None) -> list[Row]:
        """Runs a script without a line of its own; the rows of its last statement. `directory` None: the script is one of `scripts`."""
        place = directory or self.scripts
        with self._terminal.spinner(script(name, place).path.name):
            return rows_of(self._spark, name, place)

    def _kill(self, name: str, target: str) -> None:
        """Lets another process run a script, and kills it when `target` has its first write."""
        path = script(name, self.scripts).path
        with self._terminal.step(f"streamql run {path.name}, killed", hint="starts a Spark of its own") as step:
            step.note = killed_consumer(self._spark, self._directory, path, target)

    def _look_back(self) -> None:
        self._terminal.section("What streamql remembers", "The offset of each stream, and who took what.")
        self._table("SHOW STREAMS (some of its columns)", self._quietly("streams", DIRECTORY), STREAM_COLUMNS)
        self._table("SELECT … FROM streamql.consumptions", self._quietly("ledger", DIRECTORY), LEDGER_COLUMNS)

    def _prove(self) -> None:
        with self._terminal.spinner("prove"):
            claims = list(self._claims())
        self._terminal.prove(claims)

    def _table(self, title: str, rows: Sequence[Row], columns: Sequence[str] = ()) -> None:
        names = columns or (rows[0].__fields__ if rows else ())
        self._terminal.table(title, names, [[row[name] for name in names] for row in rows], "nothing")


def _is_count(rows: Sequence[Row]) -> bool:
    return bool(rows) and "num_affected_rows" in rows[0]
