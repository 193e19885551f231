"""Which cases a run takes of each test: a sample, drawn with a seed from the commit, or all.

make test                      # a sample: another one for each commit, the same one for one commit
make test TESTS=tests/consume  # each case that the tests of a directory or file name; of generated cases a sample
make test-all                  # everything
STREAMQL_SEED=7 make test      # the sample of a seed, which the head of each run shows
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

IS_LONG = "STREAMQL_LONG" in os.environ
"""Whether the run takes everything. Tests that can take any amount read the number in it."""


def _seed() -> int:
    if named := os.environ.get("STREAMQL_SEED"):
        return int(named)
    try:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        ).stdout
        return int(head[:6], 16)
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository: a source archive
        return 0


SEED = _seed()


def amount(short: int, long: int) -> int:
    """How much a test does of what has no natural end (kills, seconds, windows). In a long run: the number in STREAMQL_LONG; if that is 1,
    `long`."""
    named = int(os.environ.get("STREAMQL_LONG") or "0")
    return named if named > 1 else long if IS_LONG else short


def sample(label: str, cases: Sequence[T], count: int) -> list[T]:
    """`count` of the cases in their order, or all of them in a long run. `label`: what the cases are, so that samples differ."""
    if IS_LONG or count >= len(cases):
        return list(cases)
    chosen = sorted(random.Random(f"{SEED} {label}").sample(range(len(cases)), count))
    return [cases[i] for i in chosen]
