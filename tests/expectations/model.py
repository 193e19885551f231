"""Rows, expectations and consumptions in plain Python: what a stream must show of two versions, and what must be quarantined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Row = tuple[int | None, str | None]
"""(k, amount) of a row. Rows are recognized by their number r, which no statement changes."""

Version = Mapping[int, Row]
Change = tuple[str, int, int | None, str | None]
"""(change type, r, k, amount)."""


def _cast(text: str | None) -> int | None:
    """CAST(amount AS INT) in ANSI mode."""
    if text is None:
        return None
    number = int(text)
    if not -(2**31) <= number < 2**31:
        raise OverflowError(text)
    return number


def _positive(_: int, __: int | None, amount: str | None) -> bool | None:
    number = _cast(amount)
    return None if number is None else number > 0


def _divided(_: int, k: int | None, __: str | None) -> bool | None:
    return None if k is None else 12 / k > 2


def _either(_: int, k: int | None, amount: str | None) -> bool | None:
    """Either operand may be NULL, which is unknown. Spark evaluates the second one if the first is not TRUE, and so may fail."""
    small = None if k is None else k < 3
    if small:
        return True
    number = _cast(amount)
    if number is not None and number > 10:
        return True
    return None if small is None or number is None else False


CONDITIONS: Mapping[str, Callable[[int, int | None, str | None], bool | None]] = {
    "CAST(amount AS INT) > 0": _positive,
    "12 / k > 2": _divided,
    "k < 3 OR CAST(amount AS INT) > 10": _either,
    "amount IS NOT NULL": lambda r, k, amount: amount is not None,
    "amount <> '25'": lambda r, k, amount: None if amount is None else amount != "25",
    "NOT k > 4": lambda r, k, amount: None if k is None else not k > 4,
    "r % 5 <> 3": lambda r, k, amount: r % 5 != 3,
}
"""Conditions in SQL, each with its meaning: TRUE, FALSE, NULL, or an error."""
RARE = "r % 13 <> 7"
"""The condition of FAIL: of others, too many rows would fail every statement."""


@dataclass(frozen=True)
class Expected:
    """An expectation. `table`: its quarantine table; empty: it has none."""

    name: str
    condition: str
    action: str
    table: str = ""

    @property
    def clause(self) -> str:
        """The clause of CREATE STREAM."""
        into = f" INTO {self.table}" if self.table else ""
        return f"EXPECTATION {self.name} CHECK ({self.condition}) ON VIOLATION {self.action}{into}"

    def is_met(self, r: int, row: Row) -> bool:
        """Whether a row meets it: only if the result is TRUE."""
        if self.condition == RARE:
            return r % 13 != 7
        try:
            return CONDITIONS[self.condition](r, *row) is True
        except (ValueError, ArithmeticError):
            return False


def violated(expected: Sequence[Expected], r: int, row: Row, *actions: str) -> list[Expected]:
    """The expectations with these actions that a row violates; without actions, all of them."""
    return [e for e in expected if (not actions or e.action in actions) and not e.is_met(r, row)]


@dataclass
class Taken:
    """What one consumption of the changes between two versions does. `shown`: what the stream shows. `quarantined`: by table, (first
    expectation, all that are violated, change). `counts`: rows by the expectation that they violate. `failing`: rows that fail it."""

    shown: Counter[Change] = field(default_factory=Counter)
    quarantined: dict[str, Counter[tuple[str, tuple[str, ...], Change]]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    failing: list[int] = field(default_factory=list)


def taken(before: Version, after: Version, expected: Sequence[Expected]) -> Taken:
    """What a stream with these expectations has between two versions."""
    found = Taken()
    for r in sorted({*before, *after}):
        old, new = before.get(r), after.get(r)
        if old == new:
            continue
        is_old = old is not None and not violated(expected, r, old, "DROP", "QUARANTINE")
        is_new = new is not None and not violated(expected, r, new, "DROP", "QUARANTINE")
        if old is not None and is_old:
            found.shown["UPDATE_BEFORE" if is_new else "DELETE", r, old[0], old[1]] += 1
        if new is not None:
            if is_new:
                found.shown["UPDATE_AFTER" if is_old else "INSERT", r, new[0], new[1]] += 1
            _check(found, expected, ("INSERT" if old is None else "UPDATE_AFTER", r, new[0], new[1]))
    return found


def _check(found: Taken, expected: Sequence[Expected], change: Change) -> None:
    _, r, k, amount = change
    wrong = violated(expected, r, (k, amount))
    found.counts.update(e.name for e in wrong)
    if any(e.action == "FAIL" for e in wrong):
        found.failing.append(r)
    first = next((e for e in wrong if e.action == "QUARANTINE"), None)
    if first is not None:
        rows = found.quarantined.setdefault(first.table, Counter())
        rows[first.name, tuple(e.name for e in wrong), change] += 1


def merged(copy: Mapping[int, Row], shown: Counter[Change]) -> dict[int, Row]:
    """A copy after a MERGE of what a stream shows."""
    left = dict(copy)
    for change_type, r, k, amount in shown:
        if change_type == "DELETE":
            left.pop(r, None)
        elif change_type != "UPDATE_BEFORE":
            left[r] = (k, amount)
    return left
