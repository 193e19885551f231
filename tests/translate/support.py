"""What tests of single constructs share: the text that a script becomes, and the reason why a statement is refused."""

from __future__ import annotations

from streamql.translate import Refused, System, translate


def becomes(system: System, script: str) -> list[str]:
    """Returns the lines of the translation."""
    return translate(script, system).text.splitlines()


def refusal(system: System, statement: str) -> str:
    """Returns the reason why the script's last statement is refused; empty: it is translated."""
    result = translate(statement, system).pieces[-1].result
    return result.reason if isinstance(result, Refused) else ""
