"""What is said of a command line that is wrong: argparse's sentence, and what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from streamql.misspelt import suggestion

_UNKNOWN = "unrecognized arguments: "
_REQUIRED = "the following arguments are required"
_VERBS = frozenset(
    ("alter", "begin", "create", "delete", "desc", "describe", "drop", "explain", "from", "insert", "merge",
    "optimize", "select", "set", "show", "truncate", "update", "use", "vacuum", "values", "with")
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """A parser that suggests options. `on_missing`: what to add if an argument is missing."""

    on_missing = ""

    def error(self, message: str) -> NoReturn:
        """Ends with exit code 2."""
        if message.startswith(_UNKNOWN):
            typed = message.removeprefix(_UNKNOWN).split(" ", 1)[0].partition("=")[0]
            known = (name for name in self._option_string_actions if name.startswith("--"))
            message += _suggested(typed, known) if typed.startswith("-") else ""
        elif message.startswith(_REQUIRED):
            message += self.on_missing
        super().error(message)


def unexpected(word: str, commands: Iterable[str]) -> str:
    """Returns what is wrong with a word that stands where only a command may stand."""
    commands = list(commands)
    if word.endswith((".sql", ".hql")) or Path(word).is_file():
        hint = f" (a script is given with -f {word})"
    elif word.lower().split()[:1] and word.lower().split()[0] in _VERBS:
        hint = " (SQL is given with -e 'SQL')"
    else:
        hint = _suggested(word, commands)
    return f"unexpected argument {word!r}{hint}; the commands are {', '.join(commands)}"


def _suggested(word: str, known: Iterable[str]) -> str:
    hint = suggestion(word, known)
    return f" ({hint})" if hint else ""
