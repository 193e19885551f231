"""Goes through the schedules of a scenario: those with one deviation from the plain run first, then with two, then with more."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.protocol.invariants import complaints
from tests.protocol.scheduler import Option
from tests.protocol.stage import Stage
from tests.protocol.world import World

Deviation = tuple[int, str]
"""At which choice of a run, which option instead of the first: who goes on, or what breaks."""


@dataclass(frozen=True)
class Bounds:
    """How far a schedule may go from the plain run: times that an actor is interrupted, things that break, leases found ended by others
    while their owner lives, and deviations of any type."""

    preemptions: int = 2
    faults: int = 1
    leases: int = 1
    deviations: int = 3

    def allow(self, costs: Sequence[str]) -> bool:
        """Whether choices of these costs are within the bounds."""
        spent = Counter(costs)
        return (
            spent["preemption"] <= self.preemptions
            and spent["fault"] <= self.faults
            and spent["lease"] <= self.leases
            and len(costs) <= self.deviations
        )

    def wider(self) -> Bounds:
        """One more of each."""
        return Bounds(self.preemptions + 1, self.faults + 1, self.leases + 1, self.deviations + 2)


@dataclass(frozen=True)
class Scenario:
    """What is there, who acts, and what healthy consumers do when all is over.

    `faults`: what may break. `schedules`: how many the normal size takes. `meets`: what must have come up on the way, so that a scenario
    that checks nothing is seen.
    """

    name: str
    there: Callable[[World], None]
    enter: Callable[[World], None]
    drain: Callable[[World], None]
    faults: frozenset[str] = frozenset()
    bounds: Bounds = field(default_factory=Bounds)
    schedules: int = 200
    meets: frozenset[str] = frozenset()


class Planned:
    """Chooses as a plan of deviations says, and notes down what else could have been chosen."""

    def __init__(self, plan: Sequence[Deviation]) -> None:
        self._plan = dict(plan)
        self.points: list[Sequence[Option]] = []

    def choose(self, options: Sequence[Option]) -> int:
        """The first option, but where the plan says another."""
        wanted = self._plan.get(len(self.points))
        self.points.append(options)
        if wanted is None:
            return 0
        names = [o.name for o in options]
        if wanted not in names:
            raise RuntimeError(f"the run is not the one that was planned: choice {len(self.points) - 1} has {names}")
        return names.index(wanted)

    def costs(self, plan: Sequence[Deviation]) -> list[str]:
        """What the deviations of a plan cost."""
        return [o.cost for at, name in plan for o in self.points[at] if o.name == name]


@dataclass
class Report:
    """What an exploration came to. `exhausted`: every schedule within the bounds was run."""

    scenario: str
    schedules: int = 0
    levels: Counter[int] = field(default_factory=Counter)
    exhausted: bool = False
    met: Counter[str] = field(default_factory=Counter)
    plan: tuple[Deviation, ...] = ()
    wrong: list[str] = field(default_factory=list)


def run_once(
    stage: Stage, scenario: Scenario, plan: Sequence[Deviation], traced: bool = False
) -> tuple[World, Planned, list[str]]:
    """One schedule; its world, the choices there were, and what is wrong."""
    chooser = Planned(plan)
    world = World(chooser, scenario.faults, traced)
    world.begin_as(_beginning(stage, scenario))
    stage.show(world)
    scenario.enter(world)
    world.scheduler.run()
    if world.scheduler.problem is None:
        before = len(world.outcomes)
        scenario.drain(world)
        world.drains = len(world.outcomes) - before
    return world, chooser, complaints(world)


_beginnings: dict[Callable[[World], None], World] = {}


def _beginning(stage: Stage, scenario: Scenario) -> World:
    if scenario.there not in _beginnings:
        world = World(Planned(()), frozenset())
        stage.show(world)
        scenario.there(world)
        _beginnings[scenario.there] = world
    return _beginnings[scenario.there]


def explore(
    stage: Stage, scenario: Scenario, bounds: Bounds, schedules: int, words: tuple[str, ...] = ("",), seed: int = 0
) -> Report:
    """Runs schedules until there is a complaint with one of the words, all within the bounds were run, or as many as allowed.

    Level by level: the plain run, all runs with one deviation, then those with two; a level that is too large is sampled.
    """
    report = Report(scenario.name)
    dice = random.Random(seed)
    level: list[tuple[Deviation, ...]] = [()]
    cut = False
    while level and report.schedules < schedules:
        room = schedules - report.schedules
        if len(level) > room:
            level, cut = dice.sample(level, room), True
        following: list[tuple[Deviation, ...]] = []
        for plan in level:
            world, chooser, wrong = run_once(stage, scenario, plan)
            report.schedules += 1
            report.levels[len(plan)] += 1
            report.met.update(world.met)
            if any(word in complaint for complaint in wrong for word in words):
                report.plan, report.wrong = plan, wrong
                return report
            if (
                world.scheduler.problem is None
            ):  # of a run that goes round in circles, others would be most of what there is
                following += _further(chooser, plan, bounds)
        level = following
    report.exhausted = not level and not cut
    return report


def _further(chooser: Planned, plan: tuple[Deviation, ...], bounds: Bounds) -> list[tuple[Deviation, ...]]:
    """The plans with one more deviation, later than those of this one."""
    spent = chooser.costs(plan)
    begin = plan[-1][0] + 1 if plan else 0
    return [
        (*plan, (at, option.name))
        for at in range(begin, len(chooser.points))
        for option in chooser.points[at][1:]
        if bounds.allow([*spent, option.cost])
    ]


def told(stage: Stage, scenario: Scenario, report: Report) -> str:
    """A failure for people: what is wrong, the schedule call by call, and how to see it again."""
    world, _, wrong = run_once(stage, scenario, report.plan, traced=True)
    plan = " ".join(f"{at}:{name}" for at, name in report.plan)
    return "\n".join(
        [
            f"{scenario.name}: after {report.schedules} schedules",
            *(f"  {w}" for w in report.wrong),
            *(["  (and otherwise when run again: the run is not deterministic)"] if wrong != report.wrong else []),
            f"again: python -m tests.protocol '{scenario.name}' {plan}",
            *(f"    {line}" for line in world.scheduler.told()),
        ]
    )


def parse_plan(words: Sequence[str]) -> tuple[Deviation, ...]:
    """A plan as it is printed: choice:option …"""
    pairs = [word.split(":") for word in words]
    return tuple((int(at), name) for at, name in pairs)
