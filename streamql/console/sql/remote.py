"""A session on a Spark Connect server."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from streamql.bridge.errors import as_streamql_error, silence
from streamql.console.sql import server_url
from streamql.console.sql.result_types import ResultType, result_type_of
from streamql.console.sql.session import Done, Stages
from streamql.consume.effects import from_json
from streamql.dialect import parse
from streamql.dialect.statements import BeginTransaction, CommitTransaction, RollbackTransaction
from streamql.errors import StreamqlError
from streamql.settings import EFFECTS, RUN, WANTS_EFFECTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.shell.progress import StageInfo

    from streamql.consume.effects import Effect


RETRIES_MAX = 5
RETRY_PAUSE_MS_MAX = 2_000
CLOSE_SECONDS_MAX = 3.0


def _retries() -> DefaultPolicy:
    """Returns a policy that reports a server that has gone after seconds, since a user waits: PySpark's own takes ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    return DefaultPolicy(max_retries=RETRIES_MAX, max_backoff=RETRY_PAUSE_MS_MAX)


class RemoteSession:
    """A `Session` on the server at a URL such as sc://localhost:15002."""

    def __init__(self, url: str, run: str = "") -> None:
        """Connects. `run`: the name of the run that the ledger keeps; empty: none. Raises INVALID_ARGUMENT if the URL is invalid, no server
        listens there, or Spark Connect's client is not installed."""
        server_url.reach(url)
        try:
            from pyspark.sql.connect.session import SparkSession
        except Exception as e:  # ImportError, or PySpark's own error for packages that are missing
            hint = "pip install '.[connect]' in streamql's checkout"
            raise StreamqlError("INVALID_ARGUMENT", f"Spark Connect's client cannot be used: {e}", hint=hint) from None
        silence()
        self._spark = SparkSession.builder.remote(url).getOrCreate()
        self._spark.client.set_retry_policies([_retries()])
        self._spark.conf.set(WANTS_EFFECTS, "true")
        if run:
            self._spark.conf.set(RUN, run)
        self._done = Done()
        self._is_in_transaction = False
        self._lock = threading.Lock()
        self._stages = Stages()
        self._spark.registerProgressHandler(self._note_progress)  # type: ignore[arg-type]  # any callable will do

    def sql(self, text: str) -> DataFrame:
        """Runs one statement on the server."""
        self._done = Done()
        try:
            frame: DataFrame = self._spark.sql(text)
        except PySparkException as e:
            ours = as_streamql_error(e)
            if ours is None:
                raise
            raise ours from None
        self._note_transaction(text)
        if result_type_of(text) is not ResultType.QUERY or "CONSUME" in text.upper():
            self._done = Done(self._effects())
        return frame

    def done(self) -> Done:
        """By what the server left in the session's settings. It does not say how many rows an INSERT wrote that consumes nothing."""
        return self._done

    def _effects(self) -> list[Effect]:
        left = self._spark.conf.get(EFFECTS, "")
        if not left:
            return []
        self._spark.conf.unset(EFFECTS)
        return from_json(left)

    def cancel(self) -> None:
        """Interrupts what this session runs on the server."""
        threading.Thread(target=self._interrupt, name="streamql-interrupt", daemon=True).start()

    def _interrupt(self) -> None:
        with contextlib.suppress(Exception):  # the server is gone: nothing runs
            self._spark.interruptAll()

    def close(self) -> None:
        """Ends the session on the server; not waited for longer than a moment, where that does not answer."""
        closing = threading.Thread(target=self._stop, name="streamql-closing", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS_MAX)

    def _stop(self) -> None:
        with contextlib.suppress(Exception):
            self._spark.stop()

    def stages(self) -> Stages:
        """Returns the server's last message."""
        with self._lock:
            return self._stages

    def waiting(self) -> str:
        """Nothing: the server waits, and does not say for whom."""
        return ""

    def in_transaction(self) -> bool:
        """By the statements that ran here: the server is not asked."""
        return self._is_in_transaction

    def database(self) -> str:
        """Returns the current database."""
        return self._spark.catalog.currentDatabase()

    def columns(self, name: str) -> Sequence[str]:
        """By analysing it on the server."""
        return self._spark.table(name).columns

    def _note_transaction(self, text: str) -> None:
        statement = parse(text)
        if isinstance(statement, BeginTransaction):
            self._is_in_transaction = True
        elif isinstance(statement, CommitTransaction | RollbackTransaction):
            self._is_in_transaction = False

    def _note_progress(
        self, stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        del inflight_tasks, operation_id
        open_stages = [] if done else [stage for stage in stages or () if not stage.done]
        finished, tasks = sum(s.num_completed_tasks for s in open_stages), sum(s.num_tasks for s in open_stages)
        with self._lock:
            self._stages = Stages(len(open_stages), finished, tasks)
