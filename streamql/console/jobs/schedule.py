"""When a job runs next, and what becomes of a series of runs. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

BACKOFF_SECONDS = 1.0
"""The first pause after a failure, where no --every says how long runs are apart."""

DOUBLINGS_MAX = 30

SKIPS = frozenset(("STREAM_BUSY", "STREAM_MOVED"))
"""Errors that say no more than that another runner was first: nothing is wrong, and nothing was moved."""

Ending = Literal["finished", "skipped", "failed", "stopped", "cancelled"]


@dataclass(frozen=True)
class Plan:
    """How often a job runs. Times in seconds; `every` None: once, and again only after a failure. None of the two others: without end."""

    every: float | None
    runs_max: int | None
    failures_max: int | None
    backoff_max: float

    def goes_on(self, ending: Ending, runs: int, failures: int) -> bool:
        """Returns whether there is a run after this one, the `runs`-th; `failures`: how many failed in a row up to it."""
        if ending in ("stopped", "cancelled") or (self.runs_max is not None and runs >= self.runs_max):
            return False
        if failures and self.failures_max is not None and failures >= self.failures_max:
            return False
        return self.every is not None or ending == "failed"

    def pause(self, failures: int, elapsed: float) -> float:
        """Seconds to wait after a run that took `elapsed`: runs begin `every` apart; after failures the pause doubles, up to a limit."""
        if not failures:
            return max(0.0, (self.every or 0.0) - elapsed)
        base = BACKOFF_SECONDS if self.every is None else self.every
        grown: float = base * 2 ** min(failures - 1, DOUBLINGS_MAX)
        return min(grown, max(self.backoff_max, base))


def code_of(message: str) -> tuple[str | None, str]:
    """Returns the code at the beginning of an error's message, and the rest on one line."""
    m = re.match(r"\[([A-Z][A-Z0-9_.]+)\] ?", message)
    rest = message[m.end() :] if m else message
    return (m.group(1) if m else None), " ".join(rest.split())


def ending_of(codes: list[str | None], is_whole: bool) -> Ending:
    """Returns what became of a run: the codes of its errors, and whether all its statements were come to."""
    if codes:
        return "skipped" if all(code in SKIPS for code in codes) else "failed"
    return "finished" if is_whole else "stopped"
