"""What may differ from run to run: expected texts with masks in them, matched against what came.

<time> a timestamp          <t1>, <t2> …  a timestamp, the same wherever the name stands
<n>    a whole number       <v>, <v+1> …  a whole number; the first one met says what v is
<id>   a UUID               …             any text
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from tests.transcripts.tables import Table

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?"
ID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"

Bindings = Mapping[str, str]
"""What masks stood for so far in a transcript."""

_MASK = re.compile(rf"<(time|n|id)>|<(t\d)>|<([a-z])(?:([+-])(\d+))?>|(…)|({TIME})")
_PATTERNS = {"time": TIME, "n": r"-?\d+", "id": ID}
_AUTOMATIC = ((re.compile(TIME), "<time>"), (re.compile(ID), "<id>"))


def masked(text: str) -> str:
    """The text with masks for all that a run makes up: how a new result is written down."""
    for pattern, mask in _AUTOMATIC:
        text = pattern.sub(mask, text)
    return text


def match(expected: str, actual: str, bindings: Bindings, times_as_written: bool = False) -> Bindings | None:
    """The bindings after matching one text; None where it does not match."""
    pattern, names, end = "", [], 0
    for number, mask in enumerate(_MASK.finditer(expected)):
        pattern += re.escape(expected[end : mask.start()])
        end = mask.end()
        anonymous, time, counter, sign, distance, ellipsis, literal = mask.groups()
        if anonymous or ellipsis:
            pattern += _PATTERNS.get(anonymous, r".*?")
        elif literal and not times_as_written:
            pattern += re.escape(literal)
        else:
            group = f"m{number}"
            pattern += f"(?P<{group}>{_PATTERNS['n'] if counter else TIME})"
            shift = int(f"{sign}{distance}") if distance else 0
            names.append((group, time or counter or literal, shift))
    found = re.fullmatch(pattern + re.escape(expected[end:]), actual, re.DOTALL)
    if found is None:
        return None
    bound = dict(bindings)
    for group, name, shift in names:
        value = found.group(group) if not name.isalpha() else str(int(found.group(group)) - shift)
        if bound.setdefault(name, value) != value:
            return None
    return bound if _keeps_order(bound) else None


def _keeps_order(bound: Bindings) -> bool:
    """Whether times as written stand for times in the same order, different ones for different ones."""
    pairs = sorted((name, value) for name, value in bound.items() if name[0].isdigit())
    return all(one[1] < other[1] for one, other in pairwise(pairs))


def match_table(
    expected: Table, actual: Table, bindings: Bindings, *, in_order: bool, times_as_written: bool = False
) -> Bindings | None:
    """The bindings after matching a table, its rows in any order unless `in_order`; None where it does not match."""
    if expected.header != actual.header or len(expected.rows) != len(actual.rows):
        return None

    def place(done: int, left: tuple[tuple[str, ...], ...], bound: Bindings) -> Bindings | None:
        if not left:
            return bound
        for index, row in enumerate(left[:1] if in_order else left):
            after = _match_row(expected.rows[done], row, bound, times_as_written)
            if after is None:
                continue
            result = place(done + 1, left[:index] + left[index + 1 :], after)
            if result is not None:
                return result
        return None

    return place(0, actual.rows, bindings)


def _match_row(
    expected: Sequence[str], actual: Sequence[str], bindings: Bindings, times_as_written: bool
) -> Bindings | None:
    bound: Bindings | None = bindings
    for one, other in zip(expected, actual, strict=True):
        if bound is None:
            return None
        bound = match(one, other, bound, times_as_written)
    return bound
