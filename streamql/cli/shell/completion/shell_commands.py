"""Completion of the shell's own commands, and when a menu may open by itself. Pure."""

from __future__ import annotations

import re

from streamql.cli.shell import commands
from streamql.cli.shell.commands import CommandError
from streamql.console.options import FORMATS

_LETTERS_MIN = 2
_WORD_END = re.compile(r"[\w$`]*\Z")


def offers_while_typing(before: str) -> bool:
    """Returns whether a menu helps here without Tab: behind a dot, or within a word that has begun."""
    word = _WORD_END.search(before)
    typed = word.group() if word else ""
    return len(typed) >= _LETTERS_MIN or before.endswith(".")


def in_command(before: str) -> tuple[str, str]:
    """Returns what type of thing is being typed in a command's line, `command` for its name, and how far it is typed."""
    text = before.lstrip()
    call = commands.parse(text)
    if call is None:
        return "", ""
    typed = text[1:] if text.startswith("!") else text.partition(" ")[2]
    if not text.startswith("!") and " " not in text:
        return "command", text
    try:
        command = commands.find(call)
    except CommandError:
        return "", ""
    return command.argument, typed.lstrip()


def candidates_of_command(place: str, word: str, topics: list[str]) -> list[tuple[str, str]]:
    """(text, what it is), for what is being typed."""
    offered: list[tuple[str, str]] = []
    if place == "command":
        offered = [(name, c.summary) for c in commands.COMMANDS for name in c.names if name.startswith("\\")]
    elif place == "format":
        offered = [(name, "format") for name in FORMATS]
    elif place == "switch":
        offered = [("on", ""), ("off", "")]
    elif place == "topic":
        offered = [(name, "help") for name in topics]
    found = [(text, what) for text, what in offered if text.lower().startswith(word.lower())]
    return [] if [text for text, _ in found] == [word] else found
