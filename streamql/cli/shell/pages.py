"""Entries of \\help, made of the pages of the reference of SQL: what fits a screen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FAILS = " -- fails"
"""What stands behind an example that is to fail."""

EXAMPLE_LINES_MAX = 9

_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_RESULT = ("+", "|", "WARNING ", "Hint: ")
_FAILED = "ERROR ["


@dataclass(frozen=True)
class Topic:
    """An entry of \\help. `names`: what the title of the page names. `grammar`: its block of syntax. `examples`: statements.
    `page`: the whole text, in which words are looked up."""

    path: Path
    names: tuple[str, ...]
    summary: str
    text: str
    grammar: str
    examples: tuple[str, ...]
    page: str

    @property
    def name(self) -> str:
        """Returns the name under which \\help lists it."""
        return self.names[0]


@cache
def topic_of(path: Path) -> Topic:
    """Returns the entry that a page makes: its title, first paragraph and syntax, and the first examples."""
    page = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    title, paragraph, _ = page.removeprefix("# ").split("\n\n", 2)
    summary, _, text = _plain(paragraph).partition(". ")
    names = re.split(", |: ", re.sub(r" ….*", "", title))
    return Topic(path, tuple(names), summary, text, _block(page, "Syntax"), _examples(_block(page, "Examples")), page)


def _plain(paragraph: str) -> str:
    return " ".join(_LINK.sub(r"\1", paragraph).replace("`", "").split())


def _block(page: str, heading: str) -> str:
    """Returns the first block of code below a heading. Raises ValueError if there is none."""
    found = re.search(rf"^## {heading}\n.*?^```\w+\n(.*?)\n```$", page, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"the page has no block below {heading}")
    return found.group(1)


def _examples(block: str) -> tuple[str, ...]:
    """Returns the statements behind the first paragraph, which prepares them: as many paragraphs as fit, without those that only fail."""
    found = map(_statements, block.split("\n\n"))
    paragraphs = [one for one in found if not all(text.endswith(FAILS) for text in one)]
    chosen: list[str] = []
    for paragraph in paragraphs[1:] or paragraphs:
        if chosen and len("\n".join(chosen + paragraph).split("\n")) > EXAMPLE_LINES_MAX:
            break
        chosen += paragraph
    while chosen[-1].endswith(FAILS):
        chosen.pop()
    return tuple(chosen)


def _statements(paragraph: str) -> list[str]:
    """Returns the statements of a paragraph without their results."""
    statements: list[str] = []
    lines: list[str] = []
    for line in paragraph.split("\n"):
        if line.startswith(_FAILED):
            statements[-1] += FAILS
        elif not line.startswith(_RESULT):
            lines.append(line)
            if line.endswith(";"):
                statements.append("\n".join(lines))
                lines = []
    return statements
