"""What tests of single constructs share: the text that a script becomes, and the reason why a statement is refused."""

from __future__ import annotations

from streamql.features.translate.model import Refused, System
from streamql.features.translate.script import translate


def becomes(system: System, script: str) -> list[str]:
    """Returns the lines of the translation."""
    return translate(script, system).text.splitlines()


def check_noted(system: System, statement: str, note: str, expected: list[str]) -> None:
    """Checks that a statement becomes one note, which has a text, and the lines `expected`."""
    first, *statements = becomes(system, statement)
    assert first.startswith("-- note: ")
    assert note in first
    assert statements == expected


def refusal(system: System, statement: str) -> str:
    """Returns the reason why the script's last statement is refused; empty: it is translated."""
    result = translate(statement, system).pieces[-1].result
    return result.reason if isinstance(result, Refused) else ""
