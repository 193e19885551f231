"""The texts of \\help: the topics that features register, and the shell's commands and keys."""

from __future__ import annotations

import re
import textwrap

from streamql.cli.shell import commands
from streamql.cli.shell.commands import CommandError
from streamql.cli.shell.completion import words
from streamql.feature import Topic, features
from streamql.misspelt import did_you_mean, nearest

WIDTH = 78
"""Columns of a terminal that a text takes at most."""


def all_topics() -> list[Topic]:
    """Returns what \\help shows, in its order."""
    return [topic for feature in features() for topic in feature.topics()]


_KEYS = (
    "keys: Enter behind a semicolon runs the statement, Alt-Enter never does; Tab completes; Up and Ctrl-R search the history; Ctrl-C "
    "cancels the statement; Ctrl-D leaves; Ctrl-X Ctrl-E opens $EDITOR. What begins with a space, or seems to hold a password, is not "
    "written to the history."
)


def names() -> list[str]:
    """Returns what \\help takes."""
    return [topic.name for topic in all_topics()]


def find(argument: str) -> str:
    """Returns the text of a topic. Raises CommandError, with the nearest there is."""
    wanted = " ".join(argument.rstrip(";").upper().split())
    known = {name.upper(): topic for topic in all_topics() for name in (*topic.also, topic.name)}
    known |= {phrase: topic for topic in all_topics() for phrase in _phrases(topic) if phrase not in known}
    topic = known.get(wanted) or next((t for name, t in known.items() if wanted and name.startswith(wanted)), None)
    if topic is not None:
        return _shown(topic)
    guess = nearest(wanted, known)
    hint = did_you_mean(f"\\help {known[guess].name}") if guess else "\\help lists what there is"
    raise CommandError(f"there is no help on {argument}", hint)


def _phrases(topic: Topic) -> list[str]:
    """Returns the first keywords of the statements that a topic is about, by its grammars."""
    patterns = [_head(grammar) for grammar in topic.grammars]
    spelled = (
        (" ".join(phrase), " ".join("DESCRIBE" if w == "DESC" else w for w in phrase)) for phrase in words.phrases()
    )
    return [text for text, in_full in spelled if any(pattern.fullmatch(f"{in_full} ") for pattern in patterns)]


_MARKS = {"[": "(?:", "]": ")?", "{": "(?:", "}": ")", "|": "|"}


def _head(grammar: str) -> re.Pattern[str]:
    """Returns the pattern of a grammar up to its first name, for keywords with a space behind each."""
    pattern, depth = "", 0
    for part in re.findall(r"[\[\]{}|]|[^\s\[\]{}|]+", grammar):
        if depth == 0 and part not in _MARKS and not re.fullmatch("[A-Z]+", part):
            break
        depth += (part in "[{") - (part in "]}")
        pattern += _MARKS.get(part, re.escape(part) + " ")
    return re.compile(pattern)


def overview() -> str:
    """Commands, keys and topics."""
    width = max(len(topic.name) for topic in all_topics())
    return "\n".join(
        (
            "commands:",
            *commands.listing(),
            "",
            *textwrap.wrap(_KEYS, WIDTH, subsequent_indent="  "),
            "",
            "\\help followed by",
            *(f"  {topic.name:<{width}}  {topic.summary}" for topic in all_topics()),
        )
    )


def _shown(topic: Topic) -> str:
    lines = [f"{topic.name}: {topic.summary}", ""]
    for grammar in topic.grammars:
        lines += textwrap.wrap(grammar, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
    lines += ["", *textwrap.wrap(topic.text, WIDTH), "", "for example"]
    lines += ["  " + line for example in topic.examples for line in example.split("\n")]
    return "\n".join(lines)
