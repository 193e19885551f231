"""The product's own consumption under every type of interruption: nothing is lost, nothing comes twice. See tests/protocol/__init__.py."""

from __future__ import annotations

import pytest

from streamql.delta import txns
from tests.protocol.conftest import Size, fail_if_wrong
from tests.protocol.explore import Report, Scenario, run_once, told
from tests.protocol.scenarios import SCENARIOS
from tests.protocol.stage import Stage

PLAIN_ENDINGS = {"", "DeltaError", "STREAM_NOT_FOUND", "STREAM_ALREADY_EXISTS"}
"""How statements end when nothing comes in between: as they should, or for a table that exists, a stream that was dropped, a name taken."""


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda s: s.name)
def test_every_change_arrives_once(on: Stage, size: Size, scenario: Scenario) -> None:
    unmet = set(scenario.meets)
    for sample in size.samples():  # what is rare does not come up in every sample
        report = sample.explore(on, scenario)
        fail_if_wrong(on, scenario, report)
        assert report.exhausted or report.schedules == size.of(scenario).schedules
        unmet -= report.met.keys()
        if not unmet:
            break
    assert unmet == set()


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda s: s.name)
def test_without_a_disturbance_all_statements_do_their_work(on: Stage, scenario: Scenario) -> None:
    world, chooser, wrong = run_once(on, scenario, ())
    assert wrong == []
    assert {o.code for o in world.outcomes} <= PLAIN_ENDINGS
    assert len(chooser.points) >= 10


def test_numbers_are_asked_of_the_whole_state_where_commits_are_too_many(
    on: Stage, size: Size, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(txns, "REPLAY_COMMITS_MAX", 0)
    scenario = SCENARIOS["two targets"]
    fail_if_wrong(on, scenario, size.explore(on, scenario))


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("two inserts", ((12, "B"), (15, "later"))),
        ("one insert", ((8, "orphan"), (13, "A"))),  # two processes resolve the consumption with equal events
    ],
)
def test_a_schedule_runs_again_as_it_did(on: Stage, name: str, plan: tuple[tuple[int, str], ...]) -> None:
    traces = []
    for _ in range(20):
        world, _, _ = run_once(on, SCENARIOS[name], plan, traced=True)
        traces.append(world.scheduler.trace)
    assert traces[0]
    assert all(trace == traces[0] for trace in traces)


def test_a_failure_is_told_call_by_call(on: Stage) -> None:
    scenario = SCENARIOS["two inserts"]
    text = told(on, scenario, Report(scenario.name, schedules=7, wrong=["LOST: all of it"]))
    assert "two inserts: after 7 schedules\n  LOST: all of it\n" in text
    assert "again: python -m tests.protocol 'two inserts' \n" in text
    assert "A: commits claim consumption-1 n=2 {'stream-1': [0, 2, False]} -> 2\n" in text
    assert "commits WRITE of ['stream-1:1', 'stream-1:2'] into x with 4 -> version 1\n" in text
