"""Benchmarks as data, and how they are run: every case in each round, one after another, so that a machine that slows down slows all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.context import Context

OURS = "streamql"
"""The case that the others are compared with, where a benchmark has one of this name; else its first."""


WARM_SECONDS = 10.0
WARM_RUNS_MAX = 50


@dataclass(frozen=True)
class Case:
    """One way to do the work. `run` answers its own seconds where it measures itself; `before`, and what it costs, is not counted."""

    name: str
    run: Callable[[], float | None]
    before: Callable[[], object] | None = None


@dataclass(frozen=True)
class Target:
    """A claim: the case takes at most `at_most` times what `against` takes, round for round; without `against`, so many seconds."""

    at_most: float
    against: str | None = None
    case: str = OURS

    @property
    def text(self) -> str:
        """For people."""
        return (
            f"{self.case} ≤ {self.at_most:g} s"
            if self.against is None
            else f"{self.case} ≤ {self.at_most:g} x {self.against}"
        )


@dataclass(frozen=True)
class Benchmark:
    """Some work, and the ways to do it. `prepare` makes what is needed, once, and may leave a case out; `rows`: of its table."""

    name: str
    summary: str
    prepare: Callable[[Context, int], Sequence[Case]]
    rows: int = 0
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True)
class Result:
    """Seconds of each case, a round a place; `first_run`: of its very first run, cold."""

    benchmark: Benchmark
    rows: int
    seconds: dict[str, list[float]]
    first_run: dict[str, float]

    @property
    def first(self) -> str:
        """The case that ratios are of."""
        return OURS if OURS in self.seconds else next(iter(self.seconds))

    def median(self, case: str) -> float:
        """The middle of a case's seconds."""
        return statistics.median(self.seconds[case])

    def ratio(self, case: str, against: str) -> float:
        """The middle of the rounds' ratios: pairs that ran beside each other."""
        pairs = zip(self.seconds[case], self.seconds[against], strict=True)
        return statistics.median(a / b for a, b in pairs)

    def measured(self, target: Target) -> float | None:
        """What a target speaks of; None where one of its cases did not run."""
        if any(c is not None and c not in self.seconds for c in (target.case, target.against)):
            return None
        return self.median(target.case) if target.against is None else self.ratio(target.case, target.against)


def measure(benchmark: Benchmark, context: Context, rows: int, rounds: int) -> Result:
    """Warms up, then runs every case `rounds` times, alternating; each round begins with another case, so that none always comes after the
    one that leaves most to be collected."""
    cases = list(benchmark.prepare(context, rows))
    seconds: dict[str, list[float]] = {c.name: [] for c in cases}
    first_run = _warm_up(cases)
    for n in range(rounds):
        for i in range(len(cases)):
            case = cases[(n + i) % len(cases)]
            seconds[case.name].append(_timed(case))
    return Result(benchmark, rows, seconds, first_run)


def _warm_up(cases: Sequence[Case]) -> dict[str, float]:
    """Runs each case for WARM_SECONDS, at most WARM_RUNS_MAX times, alternating: a JVM compiles what has run for seconds, not what ran
    once, and until then a case of a tenth of a second is timed by what it is interpreted from. Answers the seconds of first runs."""
    first: dict[str, float] = {}
    spent = {c.name: 0.0 for c in cases}
    for _ in range(WARM_RUNS_MAX):
        for case in [c for c in cases if spent[c.name] < WARM_SECONDS]:
            start = time.perf_counter()
            taken = _timed(case)
            first.setdefault(case.name, taken)
            spent[case.name] += time.perf_counter() - start
    return first


def _timed(case: Case) -> float:
    if case.before is not None:
        case.before()
    start = time.perf_counter()
    own = case.run()
    return time.perf_counter() - start if own is None else own
