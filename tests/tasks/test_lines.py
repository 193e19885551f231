"""How tasks stand, in words: in the listing of `streamql streams`, on the screen of `watch`, and in the report."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from streamql.cli.html.model import Report, Window
from streamql.cli.html.page import render
from streamql.cli.status.overview import Overview
from streamql.cli.status.screen import screen, shares
from streamql.features.tasks.lines import with_roots
from streamql.features.tasks.model.runs import GraphRun, TaskRun
from streamql.features.tasks.model.schedule import read_schedule
from streamql.features.tasks.model.task import Task
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType
from tests.look.samples import HOUR, NOW, SAMPLES


def task(name: str, **fields: object) -> Task:
    full = Name("spark_catalog", "etl", name)
    definition = Definition(name, DefinitionType.TASK, full, {}, None, 0, "ann", "")
    return replace(Task(definition, "SELECT 1", ("spark_catalog", "etl")), **fields)  # type: ignore[arg-type]


def pipeline() -> list[Task]:
    """A root that runs every five minutes, a task behind it that failed, one behind that, one that waits for data, one without its root."""
    hour_ago = NOW - HOUR
    entries = [
        TaskRun("r", "load", "etl.load", "SUCCEEDED", started_ms=hour_ago, ended_ms=hour_ago),
        TaskRun("r", "check", "etl.check", "FAILED", started_ms=hour_ago, ended_ms=hour_ago, why="[X] <b>bad</b>"),
        TaskRun(
            "r", "copy", "etl.copy", "SKIPPED", started_ms=hour_ago, ended_ms=hour_ago, why="task etl.check failed"
        ),
    ]
    last = GraphRun("r", 1, hour_ago, hour_ago, tasks={t.uuid: t for t in entries}, ended_ms=hour_ago)
    load = task(
        "load", schedule=read_schedule("5 minutes"), is_suspended=False, since_ms=hour_ago, last=last, failures=2
    )
    check = task("check", after=(load.name,), is_suspended=False)
    running = GraphRun("q", 2, NOW, NOW).put(TaskRun("q", "data", "etl.data", "RUNNING", started_ms=NOW))
    return [
        load,
        check,
        task("copy", after=(check.name,), is_suspended=False),
        task("data", condition="stream_has_data('s')", is_suspended=False, runs=(running,)),
        task("lost", after=(Name("spark_catalog", "etl", "gone"),)),
    ]


def seen() -> Overview:
    tasks = pipeline()
    return Overview(NOW, SAMPLES, (), with_roots(tasks, tasks))


def test_tasks_in_words() -> None:
    lines = {line.name: line for line in seen().task_listing.lines}
    assert {name: line.state for name, line in lines.items()} == {
        "etl.load": "started",
        "etl.check": "failed",
        "etl.copy": "started",
        "etl.data": "running",
        "etl.lost": "lost",
    }
    assert lines["etl.load"].cells == (
        "etl.load",
        "",
        "every 5 minutes",
        "2 failures",
        "started",
        "in 5 min",
        "SUCCEEDED 1 h ago",
    )
    assert lines["etl.check"].trouble == "its last run failed: [X] <b>bad</b>"
    assert lines["etl.data"].lag == "on its condition"
    assert lines["etl.lost"].trouble == "the tasks before it do not exist"
    assert seen().summary.endswith("5 tasks: 1 lost, 1 failed, 1 running, 2 started")
    assert [line.name for line in seen().troubled][-2:] == ["etl.lost", "etl.check"]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50), (60, 12)])
def test_a_screen_holds_streams_and_tasks(width: int, height: int) -> None:
    console = Console(width=width, height=height, force_terminal=False)
    with console.capture() as captured:
        console.print(screen(seen(), width, height, 2.0))
    lines = captured.get().splitlines()
    assert len(lines) <= height
    assert any("etl.lost" in line for line in lines)
    assert any("sales." in line for line in lines)


def test_shares_of_the_room() -> None:
    assert shares([3, 9], 20) == [3, 9]
    assert shares([9, 9], 10) == [5, 5]
    assert shares([1, 9, 9], 11) == [1, 5, 5]
    assert shares([20], 7) == [7]


def test_tasks_are_in_the_report() -> None:
    page = render(Report(seen(), Window(NOW - HOUR, NOW)))
    assert "<h2>Tasks</h2>" in page
    assert "etl.check" in page
    assert "&lt;b&gt;bad&lt;/b&gt;" in page
    assert "<b>bad</b>" not in page


def test_a_condition_is_looked_at_when_its_task_is_resumed() -> None:
    """Otherwise `streamql scheduler --once`, run just after RESUME, would find nothing due. A schedule begins an interval later."""
    triggered = task("data", condition="stream_has_data('s')", is_suspended=False, since_ms=NOW)
    timed = task("load", schedule=read_schedule("30 seconds"), is_suspended=False, since_ms=NOW)
    ticks = [
        [t.ticks.tick_up_to(NOW + later, t.start_ms) for later in (0, 29_999, 30_000)]
        for t in (triggered, timed)
        if t.ticks
    ]
    assert ticks == [[NOW, NOW, NOW + 30_000], [None, None, NOW + 30_000]]
