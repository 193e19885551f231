"""The heartbeat of a task that runs."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.consume.claims.heartbeat import Beating
from streamql.features.tasks.model.runs import TaskRun
from streamql.features.tasks.model.task import Task
from streamql.features.tasks.runs.store import Change, changed


class Heartbeat(Beating):
    """Shows other processes that this one still runs a task. `is_lost`: another process has taken the task over, or has dropped it."""

    def __init__(self, spark: SparkSession, root_uuid: str, entry: TaskRun) -> None:
        super().__init__(spark, self._is_mine)
        self._spark = spark
        self._root = root_uuid
        self._entry = entry
        self.is_lost = False

    def _is_mine(self) -> bool:
        self.is_lost = changed(self._spark, self._root, self._beaten) is None
        return not self.is_lost

    def _beaten(self, root: Task, _: list[Task]) -> Change | None:
        run = root.run(self._entry.run_id)
        now = None if run is None else run.tasks.get(self._entry.uuid)
        if run is None or now is None or now.consumption_id != self._entry.consumption_id:
            return None
        # Not an event, so that the number of the entry stays.
        return Change(root.with_run(run.put(replace(now, heartbeat=now.heartbeat + 1))))
