"""The shell's own commands, as a table: what begins with a backslash or an exclamation mark, and what spark-sql's users type instead.

`actions` does what they say: this module is data and its lookup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from streamql.misspelt import suggestion

Argument = Literal["", "relation", "format", "topic", "file", "switch", "number", "text"]
"""What follows a command: for completion."""


class CommandError(Exception):
    """A command cannot be done as it was typed: what is wrong, and what to type."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(frozen=True)
class Command:
    """A command. `names`: the first is the one that is shown; `grammar`: its argument, as it is written."""

    names: tuple[str, ...]
    grammar: str
    summary: str
    argument: Argument


COMMANDS = (
    Command(
        ("\\help", "\\?", "\\h", "help"),
        "[statement]",
        "this list, or a statement's grammar",
        "topic",
    ),
    Command(
        ("\\d",),
        "[name]",
        "names in the database; the columns of one",
        "relation",
    ),
    Command(("\\streams",), "[pattern]", "the database's streams, with lag and staleness", "text"),
    Command(("\\l",), "", "the databases", ""),
    Command(("\\o",), "[format]", "show rows as table, csv, tsv, json or markdown", "format"),
    Command(("\\rows",), "[number]", "the most rows that a table shows; 0: all", "number"),
    Command(("\\timing",), "[on|off]", "say how long statements take", "switch"),
    Command(("\\pager",), "[on|off]", "show what is longer than the screen in a pager", "switch"),
    Command(("\\watch",), "[seconds]", "run the last statement again and again, until Ctrl-C", "number"),
    Command(("\\i", "source"), "file", "run a file of statements", "file"),
    Command(("!", "\\!"), "command", "run a command of the system's shell", "text"),
    Command(("\\clear", "clear"), "", "clear the screen; so does Ctrl-L", ""),
    Command(("\\q", "quit", "exit"), "", "leave; so does Ctrl-D", ""),
)

_BY_NAME = {name: command for command in COMMANDS for name in command.names}
_WORDS = tuple(name for name in _BY_NAME if name.isalpha())
_WORD = re.compile(rf"({'|'.join(_WORDS)})\b(?!\s*[.(=])", re.IGNORECASE)
_BACKSLASH = re.compile(r"\\(?:\w+|[!?])?")


class Call(NamedTuple):
    """A command that was typed; `name` is not one of the table's where it was mistyped."""

    name: str
    argument: str


def parse(text: str) -> Call | None:
    """Returns the command in an input; None: it is SQL. A closing semicolon is not a part of it."""
    text = text.strip()
    line = text.rstrip(";").rstrip() if not text.startswith("\\;") else text
    if line.startswith("!"):
        return Call("!", line[1:].strip())
    if m := _BACKSLASH.match(line):
        return Call(m.group().lower(), line[m.end() :].strip())
    if m := _WORD.match(line):
        call = Call(m.group(1).lower(), line[m.end() :].strip())
        return call if _fits(_BY_NAME[call.name], call.argument) else None
    return None


def _fits(command: Command, argument: str) -> bool:
    """Returns whether a word and what follows it is the command, and not the beginning of a statement: CLEAR CACHE is Spark's."""
    if "\n" in argument:
        return False
    return command.grammar.startswith("[") or bool(command.argument) == bool(argument)


def find(call: Call) -> Command:
    """Returns the command of that name. Raises CommandError, with the nearest name there is."""
    command = _BY_NAME.get(call.name)
    if command is not None:
        return command
    hint = suggestion(call.name, names()) if len(call.name) > 2 else ""
    raise CommandError(f"there is no command {call.name}", hint or "\\help lists the commands")


def names(argument: Argument | None = None) -> list[str]:
    """Returns the names that completion offers, of commands with such an argument, or of all."""
    return [n for c in COMMANDS for n in c.names if n.startswith("\\") and argument in (None, c.argument)]


def listing() -> list[str]:
    """Returns the table, as lines."""
    calls = [f"{c.names[0]} {c.grammar}".strip() for c in COMMANDS]
    width = max(map(len, calls))
    return [f"  {call:<{width}}  {c.summary}{_also(c)}" for call, c in zip(calls, COMMANDS, strict=True)]


def _also(command: Command) -> str:
    return f" (also {', '.join(command.names[1:])})" if len(command.names) > 1 else ""
