"""Tasks on Spark: how their runs end, what is run again and what is passed over, and what others are told."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from streamql.delta.names import qualify
from streamql.engine.work import Desk
from streamql.errors import StreamqlError
from streamql.features.tasks.runs.steps import abandoned, begin
from streamql.features.tasks.runs.store import all_tasks, find_task
from streamql.features.tasks.runs.work import TaskWork
from streamql.times import now_ms
from tests.consume.support import TRACKED, findings, fresh_schema, in_threads, killed, run


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """Table raw with a stream, and two tables to write into."""
    name = fresh_schema(spark, "tasked")
    run(spark, f"CREATE TABLE raw (id BIGINT) {TRACKED}")
    run(spark, "CREATE TABLE copied (id BIGINT)")
    run(spark, "CREATE TABLE noted (word STRING)")
    run(spark, "CREATE STREAM raw_st ON TABLE raw")
    yield name
    for task in all_tasks(spark):
        run(spark, f"DROP TASK {task.name}")
    spark.sql("USE default")


def words(spark: SparkSession) -> Counter[str]:
    return Counter(r["word"] for r in run(spark, "SELECT word FROM noted"))


def ids(spark: SparkSession, table: str = "copied") -> list[int]:
    return sorted(r["id"] for r in run(spark, f"SELECT id FROM {table}"))


def states(spark: SparkSession, task: str) -> list[tuple[str, int]]:
    """The states and attempts of the runs of a task that have ended, the oldest first."""
    return [(r["state"], r["attempt"]) for r in reversed(run(spark, f"SHOW TASK HISTORY FOR {task}"))]


def failed(spark: SparkSession, statement: str) -> StreamqlError:
    with pytest.raises(StreamqlError) as raised:
        run(spark, statement)
    return raised.value


def test_a_run_that_a_dead_process_left_is_continued(spark: SparkSession, schema: str) -> None:
    """The process dies when the statements have committed, and the catalog does not say so yet; then in the middle of a transaction."""
    run(
        spark,
        "CREATE TASK load AS BEGIN INSERT INTO copied SELECT id FROM raw_st; INSERT INTO noted VALUES ('load'); END",
    )
    run(spark, "CREATE TASK behind AFTER load AS INSERT INTO noted VALUES ('behind')")
    run(spark, "ALTER TASK behind RESUME")
    run(spark, "INSERT INTO raw VALUES (1), (2)")
    killed(spark, "before:task_end", f"USE {schema}", "EXECUTE TASK load")
    assert (ids(spark), words(spark)) == ([1, 2], {"load": 1})
    (left,) = findings(spark, f"{schema}.load")
    assert (left.code, left.severity) == ("TASK_LATE", "warning")
    run(spark, "INSERT INTO raw VALUES (3)")
    ran = run(spark, "EXECUTE TASK load")
    assert [(r["name"].rpartition(".")[2], r["state"]) for r in ran] == [("load", "SUCCEEDED"), ("behind", "SUCCEEDED")]
    assert (ids(spark), words(spark)) == ([1, 2, 3], {"load": 1, "behind": 1})
    run(spark, "EXECUTE TASK load")  # another run writes again
    assert words(spark) == {"load": 2, "behind": 2}

    run(spark, "CREATE TABLE other (id BIGINT)")
    both = "INSERT INTO copied SELECT id FROM raw_st; INSERT INTO other SELECT id FROM raw_st"
    run(spark, f"ALTER TASK load MODIFY AS BEGIN BEGIN; {both}; COMMIT; END")
    run(spark, "INSERT INTO raw VALUES (4), (5)")
    killed(spark, "after:execute", f"USE {schema}", "EXECUTE TASK load")
    run(spark, "EXECUTE TASK load")
    assert (ids(spark), ids(spark, "other")) == ([1, 2, 3, 4, 5], [4, 5])
    assert findings(spark, f"{schema}.load") == []


def test_failures_retries_and_suspension(spark: SparkSession, schema: str) -> None:
    run(spark, "CREATE TASK flaky SUSPEND_TASK_AFTER_NUM_FAILURES = 2 TASK_AUTO_RETRY_ATTEMPTS = 1 SCHEDULE = '1 hour' AS BEGIN "
        "INSERT INTO noted VALUES ('before'); INSERT INTO noted SELECT CAST(raise_error('no luck') AS STRING); END")  # fmt: skip
    run(spark, "CREATE TASK behind AFTER flaky AS INSERT INTO noted VALUES ('behind')")
    run(spark, "ALTER TASK behind RESUME")
    run(spark, "ALTER TASK flaky RESUME")
    error = failed(spark, "EXECUTE TASK flaky")
    assert (error.code, "no luck" in error.message) == ("TASK_FAILED", True)
    assert "RETRY LAST" in error.hint
    assert states(spark, "flaky") == [("FAILED", 1), ("FAILED", 2)]
    assert words(spark) == {"before": 1}  # the second attempt is of the same run, and passes over what it has written
    assert [r["state"] for r in run(spark, "SHOW TASKS LIKE 'flaky'")] == ["STARTED"]
    failed(spark, "EXECUTE TASK flaky")
    (shown,) = run(spark, "SHOW TASKS LIKE 'flaky'")
    assert (shown["state"], shown["failures"], shown["last_state"], shown["next_run"]) == (
        "SUSPENDED",
        2,
        "FAILED",
        None,
    )
    (behind,) = run(spark, "SHOW TASKS LIKE 'behind'")
    assert (behind["last_state"], behind["last_error"]) == ("SKIPPED", None)
    (found,) = findings(spark, f"{schema}.flaky")
    assert (found.code, "it is suspended" in found.what) == ("TASK_FAILED", True)
    run(spark, "ALTER TASK flaky MODIFY AS INSERT INTO noted VALUES ('well')")
    run(spark, "EXECUTE TASK flaky RETRY LAST")
    assert words(spark) == {"before": 2, "well": 1, "behind": 1}
    assert "nothing to retry" in failed(spark, "EXECUTE TASK flaky RETRY LAST").message
    run(spark, "ALTER TASK flaky RESUME")
    assert findings(spark, f"{schema}.flaky") == []
    assert run(spark, "SHOW TASKS LIKE 'flaky'")[0]["next_run"] is not None


def test_timeouts_and_transactions_that_stay_open(spark: SparkSession, schema: str) -> None:
    slow = "SELECT max(id) FROM range(0, 1000000000000, 1, 4) WHERE id % 7 = 3 AND hash(id) = 5"
    run(spark, f"CREATE TASK slow USER_TASK_TIMEOUT_MS = 1500 AS INSERT INTO copied {slow}")
    began = time.monotonic()
    assert "longer than USER_TASK_TIMEOUT_MS (1500 ms)" in failed(spark, "EXECUTE TASK slow").message
    assert time.monotonic() - began < 60
    run(spark, "INSERT INTO raw VALUES (1)")
    run(spark, "CREATE TASK open AS BEGIN BEGIN TRANSACTION; INSERT INTO copied SELECT id FROM raw_st; END")
    assert "end inside a transaction" in failed(spark, "EXECUTE TASK open").message
    run(
        spark,
        "ALTER TASK open MODIFY AS BEGIN BEGIN TRANSACTION; INSERT INTO copied SELECT id FROM raw_st; COMMIT; END",
    )
    run(spark, "EXECUTE TASK open RETRY LAST")
    assert ids(spark) == [1]


def test_one_run_at_a_time(spark: SparkSession, schema: str) -> None:
    run(spark, "CREATE TASK slow SCHEDULE = '1 second' AS INSERT INTO noted VALUES ('slow')")
    run(spark, "ALTER TASK slow RESUME")
    task = find_task(spark, qualify(spark, ("slow",)))
    assert task is not None
    tick = now_ms()
    claimed: list[object] = []
    assert in_threads(*[lambda: claimed.append(begin(spark, task.uuid, tick))] * 4) == []
    assert sum(c is not None for c in claimed) == 1
    now = find_task(spark, task.name)
    assert now is not None
    assert abandoned(spark, now) == []  # its thread has not begun to run it yet
    assert begin(spark, task.uuid, tick + 1000) is None  # a run is under way
    run(spark, "ALTER TASK slow SET ALLOW_OVERLAPPING_EXECUTION = TRUE")
    assert begin(spark, task.uuid, tick) is None  # the tick has its run
    assert begin(spark, task.uuid, tick + 1000) is not None


def test_what_is_due(spark: SparkSession, schema: str, caplog: pytest.LogCaptureFixture) -> None:
    """A look of the scheduler, with the events that it writes."""
    told: list[str] = []
    codes: set[object] = set()

    def tell(event: str, at_ms: int, **facts: object) -> None:
        told.append(f"{event} {str(facts.get('task')).rpartition('.')[2]}")
        if event == "failed":
            codes.add(facts["code"])
            assert str(facts["error"]).startswith("WHEN: ")

    work = TaskWork(Desk(spark, tell, lambda _: None, lambda: False, schema, 4))
    run(
        spark,
        "CREATE TASK load SCHEDULE = '1 second' WHEN SYSTEM$STREAM_HAS_DATA('raw_st') AS INSERT INTO copied SELECT id FROM raw_st",
    )
    run(spark, "CREATE TASK broken WHEN nothing > 1 AS SELECT 1")
    run(spark, "CREATE TASK later SCHEDULE = '1 hour' AS SELECT 1")
    assert work.look().items == []
    for task in ("load", "broken", "later"):
        run(spark, f"ALTER TASK {task} SET USER_TASK_MINIMUM_TRIGGER_INTERVAL_IN_SECONDS = 1")
        run(spark, f"ALTER TASK {task} RESUME")
    seen = []
    for number in range(3):
        time.sleep(1.1)
        seen.append(sorted(item.label.rpartition(".")[2] for item in work.look().items))
        if number == 2:
            run(spark, "INSERT INTO raw VALUES (1)")
        for item in work.look().items:
            item.run()
    assert seen == [["broken", "load"]] * 3
    assert Counter(told) == {"skipped load": 1, "started load": 1, "finished load": 1, "failed broken": 3}
    assert ids(spark) == [1]
    assert states(spark, "load") == [("SUCCEEDED", 1)]
    assert run(spark, "SHOW TASKS LIKE 'broken'")[0]["failures"] == 3
    assert 0 < work.look().seconds <= 5
    assert codes == {"UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"}
    assert failed(spark, "EXECUTE TASK broken").message.startswith("WHEN: [UNRESOLVED_COLUMN")
    run(spark, "CREATE TASK behind AFTER load AS SELECT 1")
    run(spark, "DROP TASK load")
    assert "behind ran behind" in caplog.text
