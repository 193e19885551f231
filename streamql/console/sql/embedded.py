"""The session of this process."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from streamql.console.render.waits import waiting_text
from streamql.console.sql.result_types import shape_of
from streamql.console.sql.session import Done, Stages
from streamql.consume import session_transactions
from streamql.consume.claims.waiting import waited_for
from streamql.consume.effects import observed
from streamql.delta.jvm import cancel_waiting
from streamql.delta.written import RowCount, counting_rows
from streamql.sessions import run_sql
from streamql.times import now_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class EmbeddedSession:
    """A `Session` over a SparkSession of this process."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tracker = spark.sparkContext.statusTracker()
        self._done = Done()

    def sql(self, text: str) -> DataFrame:
        """Runs one statement."""
        self._done = Done()
        inserts = shape_of(text).verb == "INSERT"
        with observed() as effects, counting_rows(self._spark) if inserts else nullcontext(RowCount()) as count:
            frame = run_sql(text, self._spark)
        self._done = Done(effects, count.rows)
        return frame

    def done(self) -> Done:
        """By what this process and its Delta transactions counted."""
        return self._done

    def cancel(self) -> None:
        """Cancels all jobs of this process, and its waiting for streams."""
        cancel_waiting()
        with contextlib.suppress(Exception):  # the JVM is gone: nothing runs
            self._spark.sparkContext.cancelAllJobs()

    def stages(self) -> Stages:
        """Spark's own count."""
        try:
            found = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
        except Exception:  # a progress line is never worth an error
            return Stages()
        known = [stage for stage in found if stage is not None]
        return Stages(len(known), sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known))

    def waiting(self) -> str:
        """By the waits of this process."""
        return waiting_text(waited_for(), now_ms())

    def in_transaction(self) -> bool:
        """By the session's own books."""
        return session_transactions.is_open(self._spark)

    def database(self) -> str:
        """Returns the current database."""
        return self._spark.catalog.currentDatabase()

    def columns(self, name: str) -> Sequence[str]:
        """By analysing it, which reads no rows."""
        return self._spark.table(name).columns

    def close(self) -> None:
        """Nothing: it ends with the process."""
