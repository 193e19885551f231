"""The story: what is run, in which order. The SQL is in the scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from examples.flights.proofs import Proof
from examples.orders import DIRECTORY, TOPIC, proofs
from examples.topics.producer import Event
from examples.topics.story import Story


class Orders(Story):
    """Order events into a table, and from its stream into a summary."""

    scripts = DIRECTORY
    topic = TOPIC

    def tell(self) -> None:
        """See Story."""
        self._set_up()
        half = len(self._events) // 2
        self._first_half(self._events[:half])
        self._killed(self._events[half:])
        self._look_back()

    def _claims(self) -> Iterable[Proof]:
        return proofs.arrived_once(self._spark), proofs.orders(self._spark), proofs.summary(self._spark)

    def _set_up(self) -> None:
        self._terminal.section(
            "Tables and streams",
            "An external table on the topic, a stream on it, and the tables that it will feed.",
        )
        self._run("topic", show=True)
        self._run("tables")

    def _first_half(self, events: Sequence[Event]) -> None:
        self._terminal.section(
            "Orders arrive",
            "A program sends the first half of the events. One transaction brings them into a log, a table of bad messages, and "
            "the table orders, which has one row an order. The stream on orders then feeds the summary.",
        )
        self._send(events)
        self._table("The stream on the topic shows", self._quietly("what_came"))
        self._run("upsert", show=True)
        self._table("The stream on orders shows", self._quietly("what_changed"))
        self._run("summary", show=True)
        self._prove()

    def _killed(self, events: Sequence[Event]) -> None:
        self._terminal.section(
            "A consumer is killed",
            "The second half arrives, with changes of orders that the first half has. Another process, streamql run, consumes it, and "
            "gets SIGKILL when its first statement has committed. Then the same script is run again, here.",
        )
        self._send(events)
        self._kill("upsert", "order_log")
        self._run("upsert")
        self._table("The stream on orders shows", self._quietly("what_changed"))
        self._run("summary")
        self._prove()
