"""The expectations of a stream as data, and their stored form. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from streamql.features.expectations.language.clause import QUARANTINE
from streamql.names import Name, quote_if_needed

TERMS = "expectations"
"""The name under which a stream keeps them."""


@dataclass(frozen=True)
class Expectation:
    """An expectation of the rows of a stream. `zone`: the time zone in which its condition is evaluated, so that every process finds the
    same rows. `table`: the quarantine table; None: its rows go into none."""

    name: str
    condition: str
    action: str
    zone: str
    table: Name | None = None

    @property
    def key(self) -> str:
        """Returns the name as names are compared."""
        return self.name.lower()

    @property
    def clause(self) -> str:
        """Returns the clause of CREATE STREAM that makes it."""
        into = "" if self.table is None else f" INTO {self.table.sql}"
        return f"EXPECTATION {quote_if_needed(self.name)} CHECK ({self.condition}) ON VIOLATION {self.action}{into}"

    @property
    def shown(self) -> str:
        """Returns what DESCRIBE STREAM shows of it."""
        into = "" if self.table is None else f" INTO {self.table}"
        return f"CHECK ({self.condition}) ON VIOLATION {self.action}{into}"


def to_text(expectations: Sequence[Expectation]) -> str:
    """Returns the stored form, which `from_text` reads."""
    return json.dumps(
        [
            {
                "name": e.name,
                "condition": e.condition,
                "action": e.action,
                "zone": e.zone,
                **({} if e.table is None else {"table": list(e.table.parts)}),
            }
            for e in expectations
        ]
    )


def from_text(text: str) -> tuple[Expectation, ...]:
    """Returns the expectations that `to_text` wrote."""
    return tuple(
        Expectation(
            e["name"],
            e["condition"],
            e["action"],
            e["zone"],
            Name.of(e["table"]) if "table" in e else None,
        )
        for e in json.loads(text)
    )


def tables_of(expectations: Sequence[Expectation]) -> dict[Name, list[str]]:
    """Returns the quarantine tables, each with the names of the expectations whose rows go there."""
    found: dict[Name, list[str]] = {}
    for e in expectations:
        if e.action == QUARANTINE and e.table is not None:
            found.setdefault(e.table, []).append(e.name)
    return found
