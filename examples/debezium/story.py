"""The story: what is run, in which order. The SQL is in the scripts."""

from __future__ import annotations

from collections.abc import Iterable

from examples.debezium import DIRECTORY, TOPIC
from examples.flights.proofs import Proof
from examples.flights.scripts import rows_of
from examples.topics.story import Story


class Debezium(Story):
    """Change events into a copy and a history."""

    scripts = DIRECTORY
    topic = TOPIC

    def tell(self) -> None:
        """See Story."""
        half = len(self._events) // 2
        self._terminal.section(
            "Tables and streams",
            "An external table on the topic, a stream on it, a view that parses Debezium's envelope, and two targets.",
        )
        self._run("topic", show=True)
        self._run("tables", show=True)
        self._terminal.section(
            "Changes arrive",
            "The first half of the events. Some come a day late, some twice. One transaction applies them to the copy and to the history.",
        )
        self._send(self._events[:half])
        self._table("The stream on the topic shows", self._quietly("what_came"))
        self._run("apply", show=True)
        self._prove()
        self._terminal.section(
            "A consumer is killed",
            "The second half, with late events of the first. Another process applies it, and gets SIGKILL when the copy has its rows and "
            "the history has not. Then the same script is run again, here.",
        )
        self._send(self._events[half:])
        self._kill("apply", "flights_now")
        self._run("apply")
        self._prove()
        self._table("The history of a flight", self._quietly("a_history"))
        self._look_back()

    def _claims(self) -> Iterable[Proof]:
        for name, claim in (("prove_copy", "copy = last states"), ("prove_history", "history = all states")):
            (row,) = rows_of(self._spark, name, self.scripts)
            evidence = f"{row.rows:,} rows; {row.missing:,} missing, {row.wrong:,} wrong"
            yield Proof(claim, row.rows > 0 and (row.missing, row.wrong) == (0, 0), evidence)
