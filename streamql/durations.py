"""Durations: how statements, settings and options spell them, and how messages show them. Pure.

The units and their spellings are in `streamql/shared/durations.json`, by which the extension checks the values of settings.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from streamql.shared import text_of


@dataclass(frozen=True)
class Unit:
    """A unit, and how messages show it. `spellings`: what is read as the unit, as a regular expression."""

    name: str
    ms: int
    short: str
    spellings: str


_FILE = json.loads(text_of("durations.json"))

MEANING: str = _FILE["meaning"]
ALLOWED = f"{MEANING}, such as {_FILE['examples']}"
"""What stands in messages for that which a setting, an option or a clause takes."""

UNITS = tuple(Unit(**unit) for unit in _FILE["units"])
"""From weeks to milliseconds."""

_SHOWN = UNITS[1:]  # weeks are read, and shown as days
_SECONDS = [unit.name for unit in _SHOWN].index("second")
_NUMBER = _FILE["number"]
_PARTS = "".join(rf"(?:({_NUMBER})\s*(?:{unit.spellings})\s*)?" for unit in UNITS)
_DURATION = re.compile(rf"\s*(?=\d){_PARTS}", re.IGNORECASE | re.ASCII)
_BARE = re.compile(rf"\s*({_NUMBER})\s*", re.ASCII)


def read_seconds(text: str, *, needs_unit: bool = True) -> float | None:
    """Returns a duration such as 500ms, 1.5 h, 14 days or 1h 30min in seconds; None: the text is not a duration. Each unit comes once, long
    ones first. `needs_unit`: a number without a unit is refused. Otherwise it means seconds."""
    if bare := None if needs_unit else _BARE.fullmatch(text):
        return float(bare.group(1))
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    return sum(float(number) * unit.ms for unit, number in zip(UNITS, found.groups(), strict=True) if number) / 1000


def in_words(ms: float, *, parts: int = 1, is_exact: bool = False, is_long: bool = False) -> str:
    """Returns how long a time is: 12 s, 3 min, 5 h; rounded down to its largest unit, or as many units as `parts` says: 3 min 20 s.

    `is_exact`: in the largest unit of which it is a whole number: 90 min. `is_long`: the names of units are whole words: 3 minutes."""
    rest = int(ms)
    units = _SHOWN if is_exact else _SHOWN[:-1]
    fitting = [n for n, unit in enumerate(units) if rest and (rest % unit.ms == 0 if is_exact else rest >= unit.ms)]
    first = fitting[0] if fitting else _SECONDS
    shown: list[str] = []
    for unit in units[first : first + parts]:
        number, rest = divmod(rest, unit.ms)
        name = f"{unit.name}{'' if number == 1 else 's'}" if is_long else unit.short
        shown += [f"{number} {name}"] if number or not shown else []
    return " ".join(shown)
