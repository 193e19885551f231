"""What every integration runs on: the command in a process, its results and errors. No orchestrator is needed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from streamql.errors import StreamqlError
from streamql.integrations.client import Streamql, failure, is_passing
from streamql.integrations.process import Child, Ended, Line, no_show, run, run_async
from streamql.integrations.results import Backlog, Consumption, targets_of
from tests.integrations.support import CONF, Server, free_port

ERROR = """\
a note
error in statement 2, line 7 of merge.sql: [STREAM_BUSY] demo.s is being consumed by pid 7
    7 | INSERT INTO t
SQLSTATE: 55P03
hint: wait
1 statement after it was not run"""


def python(code: str) -> Line:
    return Line([sys.executable, "-c", code])


def consumption(**fields: object) -> Consumption:
    names = Consumption.__dataclass_fields__
    return Consumption.of(json.dumps({**dict.fromkeys(names), "outcome": "CONSUMED", **fields, "of_a_newer_one": 1}))


def test_errors_are_the_commands_own() -> None:
    busy = failure(Ended(1, "", ERROR))
    assert (busy.code, busy.hint) == ("STREAM_BUSY", "wait")
    assert "demo.s is being consumed" in busy.message
    assert is_passing(busy)

    sparks = failure(Ended(1, "", "error in statement 1, line 1: [DIVIDE_BY_ZERO] Division by zero."))
    assert (sparks.code, sparks.facts["condition"]) == ("RUN_FAILED", "DIVIDE_BY_ZERO")
    assert "statement 1, line 1" in sparks.message

    assert "it said nothing" in failure(Ended(3, "", "")).message
    assert "cancelled" in failure(Ended(130, "", "cancelled")).message
    assert not is_passing(failure(Ended(1, "", "error: [STREAM_STALE] the history is gone")))


def test_arguments_that_fit_nothing() -> None:
    for arguments in (
        {},
        {"data": "/lake", "connect": "sc://h"},
        {"data": "lake"},
        {"connect": "sc://h", "conf": {"k": "v"}},
    ):
        with pytest.raises(StreamqlError, match="INVALID_ARGUMENT"):
            Streamql(**arguments)  # type: ignore[arg-type]
    streamql = Streamql(connect="sc://h/;token=secret")
    assert "secret" not in repr(streamql)
    for wrong in (
        {"name": "n"},
        {"name": "n", "sql": "SELECT 1", "script": "s.sql"},
        {"name": "${x}", "sql": "SELECT 1"},
    ):
        with pytest.raises(StreamqlError, match="INVALID_ARGUMENT"):
            streamql.start(**wrong)  # type: ignore[arg-type]
    with pytest.raises(StreamqlError, match="no stream is named"):
        streamql.has_data([])


def test_rows_of_a_target_are_counted_once_for_each_statement() -> None:
    common = {"target": "spark_catalog.d.t", "consumption_id": "c", "target_version": 4, "rows_written": 3}
    joined = [consumption(stream=s, changes={"INSERT": n}, **common) for s, n in (("d.a", 1), ("d.b", 2))]
    more = consumption(stream="d.a", **{**common, "consumption_id": "e", "target_version": 5}, changes={"DELETE": 1})
    others = [
        consumption(stream="d.a", **{**common, "outcome": "FAILED", "target": "spark_catalog.d.u"}),
        consumption(stream="d.a", target=None),
        consumption(stream="d.a", **{**common, "target": "spark_catalog.d.v", "rows_written": 0}),
    ]
    (target,) = targets_of([*joined, more, *others])
    assert (target.name, target.version, target.rows_written) == ("spark_catalog.d.t", 5, 6)
    assert target.changes == {"INSERT": 3, "DELETE": 1}
    assert [s["stream"] for s in target.facts()["streams"]] == ["d.a", "d.b", "d.a"]
    assert Backlog("d.s", True, 3, 5).interval == "d.s:3..5"


@pytest.mark.parametrize("ignored", [False, True], ids=["", "in a process that ignores SIGINT"])
def test_a_child_shows_lines_as_they_come_and_can_be_cancelled(ignored: bool) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        _cancelled()
    finally:
        signal.signal(signal.SIGINT, before)


def _cancelled() -> None:
    lines: list[tuple[str, float]] = []
    child = Child(
        python("import time; print('first', flush=True)\ntry: time.sleep(600)\nexcept KeyboardInterrupt: exit(130)")
    )

    def show(line: str) -> None:
        lines.append((line, time.monotonic()))
        threading.Timer(0.3, child.interrupt).start()

    ended = child.wait(show, show)
    assert ended.code == 130
    assert [line for line, _ in lines] == ["first"]
    assert time.monotonic() - lines[0][1] < 60


def test_a_command_that_takes_too_long_is_ended() -> None:
    line = python("import time; time.sleep(600)")
    with pytest.raises(TimeoutError, match="longer than 1 s"):
        run(line, 1)
    with pytest.raises(TimeoutError, match="longer than 1 s"):
        asyncio.run(run_async(line, 1))


def test_a_look_does_not_block_the_event_loop() -> None:
    async def beats() -> tuple[Ended, int]:
        task = asyncio.create_task(run_async(python("import time; time.sleep(1); print('done')"), 60))
        count = 0
        while not task.done():
            await asyncio.sleep(0.05)
            count += 1
        return task.result(), count

    ended, count = asyncio.run(beats())
    assert ended.out == "done\n"
    assert count > 5


def test_a_cancelled_look_leaves_no_process(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"import os, pathlib, time; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(600)"

    async def cancelled() -> None:
        task = asyncio.create_task(run_async(python(code), 60))
        while not mark.exists() or not mark.read_text():
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    listed = subprocess.run(["ps", "-o", "stat=", "-p", mark.read_text()], capture_output=True, text=True, check=False)
    assert listed.stdout.strip() in ("", "Z")


def test_a_server_that_is_down(tmp_path: Path) -> None:
    down = Streamql(connect=f"sc://127.0.0.1:{free_port()}/;token=secret")
    with pytest.raises(StreamqlError, match=r"no server answers at 127\.0\.0\.1") as raised:
        down.has_data(["d.s"])
    assert is_passing(raised.value)
    assert "secret" not in str(raised.value)
    with pytest.raises(StreamqlError, match="no server answers"):
        down.run_script(sql="SELECT 1", name="n", show=no_show)


@pytest.mark.spark
def test_a_run_over_a_data_directory(tmp_path: Path) -> None:
    streamql = Streamql(str(tmp_path / "lake"), conf=CONF)
    said: list[str] = []
    made = streamql.run_script(
        sql="""
        CREATE TABLE orders (id INT, item STRING) TBLPROPERTIES ('change_tracking' = 'true');
        CREATE TABLE copy (id INT, item STRING);
        CREATE STREAM `it's` ON TABLE orders;
        CREATE STREAM s ON TABLE orders;
        INSERT INTO orders VALUES (1, 'tea'), (2, 'rice');
        INSERT INTO copy SELECT id, item FROM `it's`;
        SELECT id FROM copy ORDER BY id;""",
        name="dag/run-1/task",
        show=said.append,
    )
    assert "INSERT: 2 rows into copy; `it's` 0 → 1" in said
    assert said[-3:-1] == ["|  1 |", "|  2 |"]
    (taken,) = made.consumptions
    assert (taken.target, taken.from_version, taken.through_version) == ("spark_catalog.default.copy", 0, 1)
    assert (taken.changes, taken.rows_written, taken.details) == ({"INSERT": 2}, 2, {"run": "dag/run-1/task"})
    assert streamql.has_data(["`it's`", "s"]) == {"`it's`": False, "s": True}


@pytest.mark.spark
def test_attempts_on_a_server(tmp_path: Path) -> None:
    """A run is known by its name: its consumptions of all attempts, and no others. A failed statement moves nothing."""
    server = Server(tmp_path)
    with server:
        streamql = server.streamql
        streamql.run_script(
            sql="""
            CREATE TABLE orders (id INT, item STRING) TBLPROPERTIES ('change_tracking' = 'true');
            CREATE TABLE copy (id INT, item STRING);
            CREATE STREAM s ON TABLE orders;
            CREATE STREAM other ON TABLE orders;
            INSERT INTO orders VALUES (1, 'tea'), (2, 'rice');
            INSERT INTO copy SELECT id, item FROM other;""",
            name="set-up",
        )
        copying = "INSERT INTO copy SELECT id, item FROM s"
        with pytest.raises(StreamqlError) as raised:
            streamql.run_script(
                sql=f"{copying};\nINSERT INTO orders VALUES (3, 'oil');\nINSERT INTO copy SELECT id, raise_error('bad') FROM s",
                name="dag/run/task",
            )
        assert raised.value.facts["condition"] == "USER_RAISED_EXCEPTION"
        assert "statement 3, line 3" in raised.value.message

        again = streamql.run_script(sql=copying, name="dag/run/task")
        assert [(c.outcome, c.from_version, c.through_version) for c in again.consumptions] == [
            ("CONSUMED", 0, 1),
            ("FAILED", 1, 2),
            ("CONSUMED", 1, 2),
        ]
        assert again.targets[0].rows_written == 3

        assert asyncio.run(streamql.has_data_async(["default.s", "other"])) == {"default.s": False, "other": True}
        assert streamql.backlogs(["s", "other"])[1] == Backlog("other", True, 1, 2, 1, 0)
        with pytest.raises(StreamqlError, match="STREAM_NOT_FOUND"):
            streamql.has_data(["nope"])

        running = streamql.start(sql="SELECT max(sha2(repeat(id, 20000), 512)) FROM range(100000000)", name="cut")
        threading.Timer(10, server.close).start()
        with pytest.raises(StreamqlError, match="RUN_FAILED"):
            running.wait()
    with pytest.raises(StreamqlError, match="no server answers"):
        streamql.run_script(sql=copying, name="dag/run/task")
