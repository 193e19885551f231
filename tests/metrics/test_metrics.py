"""The page over real streams, dynamic tables and tasks: counters are the ledger's sums, and nothing that is away fails it."""

from __future__ import annotations

import os
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.cli.main import main
from streamql.consume import consumption
from streamql.errors import StreamqlError
from streamql.features.metrics import looks as looking
from streamql.features.metrics.address import Address
from streamql.features.metrics.exposition import text_of
from streamql.features.metrics.looks import Looks, look
from streamql.features.metrics.serving import serving
from streamql.features.tasks.runs.store import all_tasks
from tests.consume.support import TRACKED, data_of, fresh_schema, killed, run, tracked_table
from tests.metrics.page import Page

SUMS = """\
WITH rows AS (SELECT * FROM streamql.consumptions WHERE stream = '{name}'),
ended AS (
  SELECT IF(bool_or(outcome = 'CONSUMED'), 'CONSUMED', max(outcome)) AS outcome, first(details) AS details,
         unix_millis(max(ended_at)) - unix_millis(min(started_at)) AS ms
  FROM rows GROUP BY consumption_id)
SELECT 'stream_consumptions' AS counter, outcome AS label, CAST(count(*) AS DOUBLE) AS n FROM ended GROUP BY outcome
UNION ALL SELECT 'stream_consumption_seconds', '{name}', sum(ms) / 1000 FROM ended
UNION ALL SELECT 'stream_rows', type, sum(n) FROM (
  SELECT explode(changes) AS (type, n) FROM rows WHERE outcome = 'CONSUMED') GROUP BY type
UNION ALL SELECT 'expectation_violation_rows', name, sum(n) FROM (
  SELECT explode(from_json(get_json_object(details, '$.violations'), 'MAP<STRING, BIGINT>')) AS (name, n) FROM ended) GROUP BY name
UNION ALL SELECT 'expectation_quarantined_rows', name, sum(w.rows) FROM (
  SELECT explode(from_json(get_json_object(details, '$.quarantined'), 'MAP<STRING, STRUCT<rows: BIGINT>>')) AS (name, w)
  FROM ended) GROUP BY name"""
LABELS = {
    "stream_consumptions": "outcome",
    "stream_consumption_seconds": "stream",
    "stream_rows": "change_type",
    "expectation_violation_rows": "expectation",
    "expectation_quarantined_rows": "table",
}
RUNS = "SELECT state, count(*) AS n FROM streamql.task_runs WHERE task = '{name}' GROUP BY state"


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    name = fresh_schema(spark, "metered")
    run(spark, f"CREATE TABLE t (id BIGINT, v BIGINT) {TRACKED}")
    for table in ("a", "b"):
        run(spark, f"CREATE TABLE {table} (id BIGINT, v BIGINT)")
    yield name
    for task in all_tasks(spark):
        run(spark, f"DROP TASK {task.name}")
    spark.sql("USE default")


def page_of(spark: SparkSession) -> Page:
    seen = look(spark)
    assert (seen.problem, seen.problems) == (None, {})
    return Page(text_of(seen))


def fails(spark: SparkSession, text: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - of Spark, or of streamql
        run(spark, text)


def agrees(spark: SparkSession, page: Page, name: str) -> None:
    """The counters of a stream are the sums of its rows of the ledger, which an independent query finds."""
    expected: dict[str, dict[tuple[str, ...], float]] = {counter: {} for counter in LABELS}
    for r in run(spark, SUMS.format(name=name)):
        expected[r["counter"]] |= {(r["label"],): r["n"]} if r["n"] else {}
    for counter, label in LABELS.items():
        found = page.all(f"streamql_{counter}_total", (label,), stream=name)
        assert found == pytest.approx(expected[counter]), counter


def test_counters_are_the_sums_of_the_ledger(spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of statements that succeed and fail, a transaction, a process that is killed, and one in doubt."""
    s = f"{schema}.s"
    run(spark, "CREATE STREAM s ON TABLE t EXPECTATION positive CHECK (v > 0) ON VIOLATION QUARANTINE "
               "EXPECTATION small CHECK (v < 100) ON VIOLATION DROP")  # fmt: skip
    run(spark, "CREATE STREAM other ON TABLE t")
    run(spark, "INSERT INTO t VALUES (1, 1), (2, -1), (3, 500), (4, 4)")
    fails(spark, "INSERT INTO a SELECT id, CAST(raise_error('no') AS BIGINT) FROM s")
    fails(spark, "INSERT INTO a SELECT id, CAST(raise_error('no') AS BIGINT) FROM s")
    page = page_of(spark)
    assert page.one("streamql_stream_consecutive_failures", stream=s) == 2
    assert page.one("streamql_stream_last_consumption_timestamp_seconds", stream=s) is None
    run(spark, "INSERT INTO a SELECT s.id, s.v FROM s JOIN other ON s.id = other.id")
    run(spark, "UPDATE t SET v = v + 1 WHERE id = 1")
    run(spark, "DELETE FROM t WHERE id = 2")
    for statement in (
        "BEGIN TRANSACTION",
        "INSERT INTO a SELECT id, v FROM s",
        "INSERT INTO b SELECT id, v FROM s",
        "COMMIT",
    ):
        run(spark, statement)

    run(spark, "INSERT INTO t VALUES (5, 5), (6, -6)")
    killed(spark, "before:end", f"INSERT INTO {schema}.a SELECT id, v FROM {s}")
    page = page_of(spark)
    assert page.one("streamql_stream_claim_abandoned", stream=s) == 1
    assert page.all("streamql_stream_state", ("state",), stream=s) == {("busy",): 1}
    run(spark, "INSERT INTO a SELECT id, v FROM s")  # resolves it: the rows that it took are not known
    page = page_of(spark)
    assert page.one("streamql_stream_consumptions_total", stream=s, outcome="CONSUMED") == 3
    agrees(spark, page, f"{schema}.other")
    (in_table,) = run(spark, "SELECT count(*) AS n FROM s_quarantine")
    assert (
        page.one("streamql_expectation_quarantined_rows_total", stream=s, table=f"{s}_quarantine") == in_table["n"] > 0
    )

    step = consumption.execute

    def without_target(*args: Any) -> Any:
        spark.newSession().sql(f"DROP TABLE {schema}.b")
        return step(*args)

    run(spark, "INSERT INTO t VALUES (7, 7)")
    with monkeypatch.context() as patch:
        patch.setattr(consumption, "execute", without_target)
        with pytest.raises(StreamqlError, match="CONSUMPTION_IN_DOUBT"):
            run(spark, "INSERT INTO b SELECT id, v FROM s")
    run(spark, "ALTER STREAM s SET OFFSET TO LATEST")
    agrees(spark, page_of(spark), s)
    run(spark, "ALTER STREAM s RENAME TO renamed")
    state = next(st for st in catalog_of(spark).all(spark) if st.name.object == "renamed")
    assert state.counts.outcomes == {"FAILED": 2, "CONSUMED": 3, "IN_DOUBT": 1}
    run(spark, "CREATE OR REPLACE STREAM renamed ON TABLE t")
    assert page_of(spark).all("streamql_stream_consumptions_total", ("outcome",), stream=f"{schema}.renamed") == {}


def test_dynamic_tables_and_tasks(spark: SparkSession, schema: str) -> None:
    d, load, behind = f"{schema}.d", f"{schema}.load", f"{schema}.behind"
    run(spark, "INSERT INTO t VALUES (1, 1), (2, 2)")
    run(
        spark,
        "CREATE DYNAMIC TABLE d TARGET_LAG = '1 hour' REFRESH_MODE = INCREMENTAL AS SELECT v, sum(10 / id) AS n FROM t GROUP BY v",
    )
    run(spark, "INSERT INTO t VALUES (3, 2)")
    run(spark, "REFRESH DYNAMIC TABLE d")
    run(spark, "INSERT INTO t VALUES (0, 2)")  # 10 / 0
    fails(spark, "REFRESH DYNAMIC TABLE d")
    page = page_of(spark)
    assert page.all("streamql_dynamic_table_state", ("state",), table=d) == {("failed",): 1}
    assert page.one("streamql_dynamic_table_consecutive_failures", table=d) == 1
    assert page.one("streamql_dynamic_table_target_lag_seconds", table=d) == 3600
    assert 0 < (page.one("streamql_dynamic_table_lag_seconds", table=d) or 0) < 600
    run(spark, "DELETE FROM t WHERE id = 0")
    run(spark, "REFRESH DYNAMIC TABLE d")
    history = run(spark, "SHOW DYNAMIC TABLE REFRESH HISTORY FOR d")
    expected: dict[tuple[str, ...], float] = {}
    for refresh in history:
        key = (refresh["mode"] or "NONE", refresh["outcome"])
        expected[key] = expected.get(key, 0) + 1
    page = page_of(spark)
    assert page.all("streamql_dynamic_table_refreshes_total", ("mode", "outcome"), table=d) == expected
    assert page.one("streamql_dynamic_table_consecutive_failures", table=d) == 0
    inserted = page.one("streamql_dynamic_table_rows_total", table=d, change="inserted")
    assert inserted == sum(refresh["rows_inserted"] or 0 for refresh in history)
    assert not any(dict(labels)["stream"].endswith("$refresh") for labels in page.values["streamql_stream_info"])

    run(
        spark,
        "CREATE TASK load SCHEDULE = '1 hour' SUSPEND_TASK_AFTER_NUM_FAILURES = 9 AS INSERT INTO a SELECT id, v FROM t",
    )
    run(
        spark,
        "CREATE TASK behind AFTER load AS INSERT INTO b SELECT id, 10 / (SELECT count(*) FROM a WHERE id = 9) FROM t",
    )
    run(spark, "ALTER TASK behind RESUME")
    fails(spark, "EXECUTE TASK load")
    run(spark, "INSERT INTO a VALUES (9, 9)")
    run(spark, "EXECUTE TASK load RETRY LAST")
    page = page_of(spark)
    for task in (load, behind):
        ended = {(r["state"],): float(r["n"]) for r in run(spark, RUNS.format(name=task))}
        assert page.all("streamql_task_runs_total", ("outcome",), task=task) == ended
        assert page.all("streamql_task_last_run_outcome", ("outcome",), task=task) == {("SUCCEEDED",): 1}
    assert page.one("streamql_task_consecutive_failures", task=load) == 0
    assert page.one("streamql_task_overdue_seconds", task=load) == 0
    run(spark, "DROP TASK behind")
    run(spark, "EXECUTE TASK load")
    (root,) = all_tasks(spark)
    assert root.counts.keys() == {root.uuid}, "those of dropped tasks go"


def jobs(spark: SparkSession) -> int:
    return int(spark._jsc.sc().statusStore().jobsList(None).size())


def test_a_look_runs_no_job_and_what_is_broken_does_not_fail_it(spark: SparkSession, schema: str) -> None:
    for name in ("fine", "broken"):
        run(spark, f"CREATE TABLE {name}_t (id BIGINT) {TRACKED}")
        run(spark, f"CREATE STREAM {name} ON TABLE {name}_t")
        run(spark, f"INSERT INTO {name}_t VALUES (1)")
    run(spark, "CREATE DYNAMIC TABLE d AS SELECT * FROM fine_t")
    page_of(spark)
    before = jobs(spark)
    page = page_of(spark)
    assert jobs(spark) == before
    fine = f"{schema}.fine"
    assert page.one("streamql_stream_info", stream=fine, source=f"{schema}.fine_t", type="TABLE", mode="STANDARD") == 1
    assert page.all("streamql_stream_state", ("state",), stream=fine) == {("data",): 1}
    assert page.one("streamql_stream_backlog_rows", stream=fine) == 1
    week = 7 * 86_400
    assert week - 600 < (page.one("streamql_stream_until_stale_seconds", stream=fine) or 0) <= week
    run(spark, "INSERT INTO fine_t VALUES (2)")
    assert page_of(spark).one("streamql_stream_lag_versions", stream=fine) == 2, "what was kept of it is not shown"
    run(spark, "DROP TABLE broken_t")
    page = page_of(spark)
    broken = f"{schema}.broken"
    assert page.all("streamql_stream_state", ("state",), stream=broken) == {("invalid",): 1}
    assert page.all("streamql_stream_error", ("code",), stream=broken) == {("STREAM_SOURCE_MISSING",): 1}
    assert page.one("streamql_stream_has_data", stream=broken) is None
    assert page.one("streamql_stream_has_data", stream=fine) == 1


def get(port: int, accept: str = "text/plain") -> str:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return str(answer.read().decode())


def test_the_catalog_is_unplugged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The page answers with streamql_up 0, and shows everything again when the catalog is back. Scrapes at once share a look."""
    session = spark.newSession()
    schema = fresh_schema(session, "unplugged")
    session.conf.set("spark.streamql.catalog", f"catalog_of_{schema}")
    session.conf.set("spark.streamql.catalogLocation", str(tmp_path / "shared"))
    tracked_table(session, 10)
    counted: list[float] = []
    monkeypatch.setattr(looking, "look", lambda s: (counted.append(time.monotonic()), look(s))[1])
    with Looks(session) as looks, serving(Address("127.0.0.1", 0), looks.get) as port:
        with ThreadPoolExecutor(5) as pool:
            pages = list(pool.map(lambda _: get(port), range(5)))
        assert len(counted) == 1
        assert not caplog.records
        assert {Page(page).one("streamql_stream_has_data", stream=f"{schema}.s") for page in pages} == {1}
        (tmp_path / "shared").rename(tmp_path / "away")
        time.sleep(looking.SHARED_SECONDS)
        page = Page(get(port))
        assert page.one("streamql_up") == 0
        assert page.one("streamql_scrape_errors", part="catalog") == 1
        assert "streamql_stream_info" not in page.values
        time.sleep(looking.SHARED_SECONDS)
        get(port)
        assert len([r for r in caplog.records if "metrics cannot be read" in r.message]) == 1, "said once"
        (tmp_path / "away").rename(tmp_path / "shared")
        time.sleep(looking.SHARED_SECONDS)
        text = get(port, "application/openmetrics-text")
        assert text.endswith("# EOF\n")
        assert f'streamql_stream_has_data{{stream="{schema}.s"}} 1.0' in text


def test_the_command(spark: SparkSession, schema: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(spark, "CREATE STREAM s ON TABLE t")
    command = ["--data", data_of(spark), "metrics"]
    assert main(command) == 0
    assert Page(capfd.readouterr().out).one("streamql_stream_has_data", stream=f"{schema}.s") == 0
    file = tmp_path / "streamql.prom"
    assert main([*command, "--textfile", str(file)]) == 0
    assert Page(file.read_text()).one("streamql_up") == 1

    def until_stopped(arguments: list[str], act: Callable[[], None]) -> int:
        def then_stop() -> None:
            act()
            os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=then_stop)
        thread.start()
        code = main([*command, *arguments])
        thread.join()
        return code

    scraped: list[str] = []

    def scrape() -> None:
        deadline = time.monotonic() + 60
        while "Ctrl-C ends it" not in (said := capfd.readouterr().out) and time.monotonic() < deadline:
            time.sleep(0.1)
        scraped.append(get(int(said.split(":")[2].split("/")[0])))

    def see_it_again() -> None:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)

    assert until_stopped(["--serve", "0"], scrape) == 0
    assert Page(scraped[0]).one("streamql_stream_has_data", stream=f"{schema}.s") == 0
    file.unlink()
    assert until_stopped(["--textfile", str(file), "--every", "100ms"], see_it_again) == 0
    assert Page(file.read_text()).one("streamql_up") == 1
