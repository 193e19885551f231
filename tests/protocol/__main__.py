"""Scenarios by hand.

python -m tests.protocol                            the names of the scenarios
python -m tests.protocol all [TIMES]                explores all of them and counts
python -m tests.protocol NAME [CHOICE:OPTION …]     one schedule of one, as a trace
"""

from __future__ import annotations

import sys
import time

from tests.protocol.explore import explore, parse_plan, run_once, told
from tests.protocol.scenarios import SCENARIOS
from tests.protocol.stage import stage


def count(times: int) -> None:
    """What each scenario's exploration comes to."""
    with stage() as on:
        for scenario in SCENARIOS.values():
            begin = time.process_time()
            bounds = scenario.bounds.wider() if times > 1 else scenario.bounds
            report = explore(on, scenario, bounds, times * scenario.schedules)
            levels = " ".join(f"{level}:{n}" for level, n in sorted(report.levels.items()))
            end = "all" if report.exhausted else "part"
            print(
                f"{scenario.name:42} {report.schedules:7} {end:4} {levels:28} {time.process_time() - begin:6.1f} s",
                flush=True,
            )
            print("   ", ", ".join(f"{what} {n}" for what, n in sorted(report.met.items())), flush=True)
            if report.wrong:
                print(told(on, scenario, report))


def show(name: str, words: tuple[str, ...]) -> None:
    """One schedule."""
    with stage() as on:
        world, _, wrong = run_once(on, SCENARIOS[name], parse_plan(words), traced=True)
    print("\n".join([*world.scheduler.told(), *(wrong or ["all is well"])]))


def main(name: str = "", *words: str) -> None:
    """As the module says."""
    if name == "all":
        count(int(words[0]) if words else 1)
    elif name in SCENARIOS:
        show(name, words)
    else:
        print("\n".join(SCENARIOS))


if __name__ == "__main__":
    main(*sys.argv[1:])
