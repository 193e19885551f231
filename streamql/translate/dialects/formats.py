"""Formats of times as Spark has them, where sqlglot leaves words of its own."""

from __future__ import annotations

import re

_SIZES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_FRACTION = re.compile(rf"SSSSSS_({'|'.join(_SIZES)})")
_ZONES = (("%:z", "X" * 3), ("%-z", "X"))


def spark_format(written: str, quote: str) -> str:
    """Returns a format that sqlglot has written for Spark. `quote`: how the text that it stands in spells a single quote.

    sqlglot has names for the sizes of a fraction, and writes the T of ISO times without quotes.
    """
    found = _FRACTION.sub(lambda match: "S" * _SIZES.index(match.group(1)), written)
    for name, letters in _ZONES:
        found = found.replace(name, letters)
    return found if "'" in found[1:-1] else found.replace("T", f"{quote}T{quote}")
