"""The checker can fail: each step of the protocol, broken on purpose, costs or doubles a row in some schedule that it runs.

pytest tests/protocol/test_mutations.py                     # a sample of the mutations
STREAMQL_LONG=1 pytest tests/protocol/test_mutations.py     # all
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.protocol.explore import explore
from tests.protocol.mutations import MUTATIONS, Mutation
from tests.protocol.scenarios import SCENARIOS
from tests.protocol.stage import Stage
from tests.sample import sample

SCHEDULES_MAX = 6000
MUTATIONS_SAMPLED = 8


@pytest.mark.parametrize("mutation", sample("mutations", MUTATIONS, MUTATIONS_SAMPLED), ids=lambda m: m.name)
def test_a_broken_step_is_found(on: Stage, monkeypatch: pytest.MonkeyPatch, mutation: Mutation) -> None:
    scenario = SCENARIOS[mutation.scenario]
    if mutation.faults is not None:
        scenario = replace(scenario, faults=mutation.faults)
    mutation.breaks(on, monkeypatch)
    report = explore(on, scenario, scenario.bounds, SCHEDULES_MAX, ("LOST", "DOUBLED"))
    assert report.wrong, f"not found in {report.schedules} schedules"
