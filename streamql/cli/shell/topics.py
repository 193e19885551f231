"""The texts of \\help: the pages that features register, and the shell's commands and keys."""

from __future__ import annotations

import re
import textwrap

from streamql.cli.shell import commands
from streamql.cli.shell.commands import CommandError
from streamql.cli.shell.pages import Topic, topic_of
from streamql.feature import features
from streamql.misspelt import did_you_mean, nearest

WIDTH = 78
"""Columns of a terminal that a text takes at most."""

NAME_WIDTH = 25
"""Columns of a name in the list. The summary of a longer one begins behind it."""

_KEYS = (
    "keys: Enter behind a semicolon runs the statement, Alt-Enter never does; Tab completes; Up and Ctrl-R search the history; Ctrl-C "
    "cancels the statement; Ctrl-D leaves; Ctrl-X Ctrl-E opens $EDITOR. What begins with a space, or seems to hold a password, is not "
    "written to the history."
)


def all_topics() -> list[Topic]:
    """Returns what \\help shows, in its order."""
    return [topic_of(path) for feature in features() for path in feature.topics]


def names() -> list[str]:
    """Returns what \\help takes."""
    return [topic.name for topic in all_topics()]


def find(argument: str) -> str:
    """Returns the text of a topic. Raises CommandError, with the nearest there is."""
    wanted = re.sub(r"^DESC\b", "DESCRIBE", " ".join(argument.rstrip(";").upper().split()))
    known = all_topics()
    topic = _topic(wanted, known)
    if topic is not None:
        return _shown(topic)
    known_words = {word for topic in known for word in re.findall(r"\w+", " ".join(topic.names) + topic.grammar)}
    corrected = " ".join(nearest(word, known_words) or word for word in wanted.split())
    guess = _topic(corrected, known)
    hint = did_you_mean(f"\\help {guess.name}") if guess else "\\help lists what there is"
    raise CommandError(f"there is no help on {argument}", hint)


def _topic(wanted: str, known: list[Topic]) -> Topic | None:
    """Returns the topic of a name, or the one whose page has the words. None: no page has them."""
    return (_by_name(wanted, known) or _by_grammar(wanted, known) or _by_page(wanted, known)) if wanted else None


def _by_name(wanted: str, known: list[Topic]) -> Topic | None:
    """Returns the topic of a name, of its first words, of other words of it, or of its beginning."""
    named = [(name.upper(), topic) for topic in known for name in topic.names]
    text = re.escape(wanted)
    patterns = (rf"{text}\Z", rf"{text}(?!\w)", rf".*(?<!\w){text}(?!\w)", text)
    return next((topic for pattern in patterns for name, topic in named if re.match(pattern, name)), None)


def _by_grammar(wanted: str, known: list[Topic]) -> Topic | None:
    """Returns the topic whose grammar has the words in their order: where a statement begins, or else most closely together."""
    words = re.compile(".*?".join(_words(wanted)), re.DOTALL | re.IGNORECASE)
    found = [
        (match.start() > 0, len(match.group()), topic)
        for topic in known
        for statement in re.split(r"\n(?! )", topic.grammar)
        for match in words.finditer(statement)
    ]
    return min(found, key=lambda one: one[:2])[2] if found else None


def _by_page(wanted: str, known: list[Topic]) -> Topic | None:
    """Returns the topic whose page has the words most often."""
    phrase = re.compile(r"\s+".join(_words(wanted)), re.IGNORECASE)
    counts = [(len(phrase.findall(topic.page)), topic) for topic in known]
    count, topic = max(counts, key=lambda one: one[0])
    return topic if count else None


def _words(text: str) -> list[str]:
    return [rf"(?<!\w){re.escape(word)}(?!\w)" for word in text.split()]


def overview() -> str:
    """Commands, keys and topics."""
    return "\n".join(
        (
            "commands:",
            *commands.listing(),
            "",
            *textwrap.wrap(_KEYS, WIDTH, subsequent_indent="  "),
            "",
            "\\help followed by",
            *(f"  {topic.name:<{NAME_WIDTH}}  {_lowered(topic.summary)}" for topic in all_topics()),
        )
    )


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _shown(topic: Topic) -> str:
    lines = [f"{topic.name}: {_lowered(topic.summary)}", ""]
    for line in topic.grammar.split("\n"):
        indent = "  " + " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(
            line,
            WIDTH,
            initial_indent="  ",
            subsequent_indent=indent + "  ",
            break_long_words=False,
            drop_whitespace=True,
        )
    lines += ["", *textwrap.wrap(topic.text, WIDTH), "", "for example"]
    lines += ["  " + line for example in topic.examples for line in example.split("\n")]
    return "\n".join([*lines, "", f"more: {topic.path}"])
