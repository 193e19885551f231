"""Runs a graph of tasks to its end in this process: EXECUTE TASK."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from pyspark.sql import SparkSession

from streamql.features.tasks.model.runs import GraphRun
from streamql.features.tasks.runs.conduct import Control, Ended, run_claimed
from streamql.features.tasks.runs.steps import Claimed, abandoned, claim, take_over
from streamql.features.tasks.runs.store import all_tasks

JOBS = 4
"""So many tasks of a graph run at once."""
POLL_SECONDS = 0.5


def run_graph(spark: SparkSession, root_uuid: str, run_id: str, first: Claimed | None) -> GraphRun | None:
    """Runs the tasks of a graph run until it has ended, and returns it. Schedulers may run some of them. `first`: a task that this process
    has claimed already. None: the root was dropped meanwhile."""
    control = Control(lambda: False)
    with ThreadPoolExecutor(JOBS) as pool:
        under_way: set[Future[Ended]] = set()

        def start(claimed: Claimed) -> None:
            under_way.add(pool.submit(run_claimed, spark, claimed, control, asks_root=True))

        if first is not None:
            start(first)
        while True:
            while len(under_way) < JOBS and (claimed := claim(spark, root_uuid, run_id)) is not None:
                start(claimed)
            if under_way:
                done, under_way = wait(under_way, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                continue
            root = next((t for t in all_tasks(spark) if t.uuid == root_uuid), None)
            if root is None:
                return None
            if root.run(run_id) is None:
                return root.last if root.last is not None and root.last.id == run_id else None
            for lost in abandoned(spark, root):
                taken = take_over(spark, root_uuid, run_id, lost) if lost.run_id == run_id else None
                if taken is not None:
                    start(taken)
            time.sleep(POLL_SECONDS)
