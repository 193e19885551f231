"""What is said of a command line that is wrong: argparse's sentence, and what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

_UNKNOWN = "unrecognized arguments: "
_REQUIRED = "the following arguments are required"
_PREFIX_MIN = 4
"""So many letters of a word, with the hyphens, say how the one begins that is meant."""
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
            message += _did_you_mean(typed, known) if typed.startswith("-") else ""
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
        hint = _did_you_mean(word, commands)
    return f"unexpected argument {word!r}{hint}; the commands are {', '.join(commands)}"


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    known = list(known)
    begun = [k for k in known if len(word) >= _PREFIX_MIN and k.startswith(word.lower())]
    found = begun or get_close_matches(word.lower(), known, n=1)
    return f" (did you mean {found[0]}?)" if found else ""
