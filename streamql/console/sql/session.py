"""What runs statements, seen from the command: a session in this process (`embedded.py`) or one on a server (`remote.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamql.consume.effects import Effect


class Stages(NamedTuple):
    """The stages that run: how many they are, their tasks done, and all their tasks."""

    running: int = 0
    done: int = 0
    tasks: int = 0


class Done(NamedTuple):
    """What the last statement did beside its result. `rows`: how many an INSERT wrote; None: not known."""

    effects: Sequence[Effect] = ()
    rows: int | None = None


class Session(Protocol):
    """A Spark session with the extension. Each method may be called in any thread; it raises what Spark raises, or StreamqlError."""

    def sql(self, text: str) -> DataFrame:
        """Runs one statement; a query's rows are computed when the frame is asked for them."""

    def done(self) -> Done:
        """Returns what the last statement of `sql` did; nothing if it failed."""

    def cancel(self) -> None:
        """Cancels what runs now. Never raises."""

    def stages(self) -> Stages:
        """Returns what runs now, for a line of progress. Never raises."""

    def waiting(self) -> str:
        """Returns for which other statement the statement waits that runs now, and since when that runs; empty: it waits for none, or this
        is not known. Never raises."""

    def in_transaction(self) -> bool:
        """Returns whether a BEGIN TRANSACTION waits for its COMMIT or ROLLBACK."""

    def database(self) -> str:
        """Returns the current database."""

    def columns(self, name: str) -> Sequence[str]:
        """Returns the columns of a table, view or stream; the name is quoted where it has to be."""

    def close(self) -> None:
        """No more statements. Never raises."""
