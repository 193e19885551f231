"""The stage that tests here share, and how much they try."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from tests.protocol.explore import Report, Scenario, explore, told
from tests.protocol.stage import Stage, stage
from tests.sample import SEED

SAMPLES_MAX = 8
"""How many samples are drawn, if what a scenario must meet does not come up in the first ones."""

TIMES_MAX = 100
"""STREAMQL_LONG counts windows in tests/histories, tens of thousands of them."""


@dataclass(frozen=True)
class Size:
    """How much is tried: so many times the schedules of the normal size."""

    times: int
    seed: int

    def of(self, scenario: Scenario) -> Scenario:
        """A scenario at this size; a long one goes further from the plain run, too."""
        bounds = scenario.bounds.wider() if self.times > 1 else scenario.bounds
        return replace(scenario, bounds=bounds, schedules=scenario.schedules * self.times)

    def samples(self) -> list[Size]:
        """This size with its seed and with those after it."""
        return [replace(self, seed=self.seed + i) for i in range(SAMPLES_MAX)]

    def explore(self, on: Stage, scenario: Scenario, words: tuple[str, ...] = ("",)) -> Report:
        """Explores a scenario at this size."""
        sized = self.of(scenario)
        return explore(on, sized, sized.bounds, sized.schedules, words, self.seed)


@pytest.fixture(scope="module")
def size() -> Size:
    """STREAMQL_LONG=n: n times as much. The seed of the sample: for scenarios of which not all is tried."""
    times = int(os.environ.get("STREAMQL_LONG") or "1")
    return Size(min(max(times, 1), TIMES_MAX), SEED)


@pytest.fixture(scope="module")
def on() -> Iterator[Stage]:
    """The product's modules over worlds in memory."""
    with stage() as made:
        yield made


def fail_if_wrong(on: Stage, scenario: Scenario, report: Report) -> None:
    """Fails with the schedule, call by call."""
    if report.wrong:
        pytest.fail(told(on, scenario, report), pytrace=False)
