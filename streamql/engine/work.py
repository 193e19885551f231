"""What a feature has for the scheduler to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from streamql.registered import registered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUSE_SECONDS_MAX = 30.0
"""How long the scheduler sleeps if nothing is due. What others create and alter is seen then."""


class Tell(Protocol):
    """Writes an event."""

    def __call__(self, event: str, at_ms: int, **facts: object) -> None:
        """Writes it; facts that are None are left out."""


@dataclass(frozen=True)
class Desk:
    """What the work of a scheduler gets.

    `tell`: writes an event; takes its name, its time in milliseconds since 1970, and its facts. `say`: shows a line to a user, if one
    looks. `stops`: whether the scheduler is asked to stop. `database`: only what is in it is run; None: everything. `jobs`: how much of it
    runs at once.
    """

    spark: SparkSession
    tell: Tell
    say: Callable[[str], None]
    stops: Callable[[], bool]
    database: str | None
    jobs: int


@dataclass(frozen=True)
class Item:
    """Something that is due. `key`: equal for equal work, which runs once at a time in this process. `run`: runs it, in a thread of its
    own; returns whether it went well. It tells its events itself."""

    key: str
    label: str
    run: Callable[[], bool]


@dataclass(frozen=True)
class Look:
    """What is due now. `seconds`: when to look again, at the latest."""

    items: Sequence[Item]
    seconds: float = PAUSE_SECONDS_MAX


class Work(Protocol):
    """The work of a feature. `look` is called by one thread."""

    def look(self) -> Look:
        """Returns what is due. Raises what the catalog raises."""

    def cancel(self) -> None:
        """Cancels what runs: each piece has then either committed, or done nothing."""


MakeWork = Callable[[Desk], Work]


def works(desk: Desk) -> list[Work]:
    """Returns the work of all features."""
    return [make(desk) for of_feature in registered("work") for make in of_feature()]
