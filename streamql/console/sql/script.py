"""Scripts into numbered statements."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace

from streamql.console.problems import Problem
from streamql.console.sql.inputs import Text
from streamql.dialect import concealed
from streamql.dialect.text.splitting import split
from streamql.dialect.text.tokens import line_and_column, scan, tokenize, unterminated, unterminated_what
from streamql.errors import ERROR_CLASSES

TITLE_LETTERS_MAX = 72


@dataclass(frozen=True)
class Statement:
    """One statement: `number` counts within its file, or over all -e and stdin; `line` is where it starts there.

    `origin` is the file's name; empty where there is nothing to tell apart. `number` 0: typed at a prompt, alone.
    """

    text: str
    number: int = 1
    line: int = 1
    origin: str = ""

    def place(self, line: int | None = None) -> str:
        """Returns where it is, in words; `line` counts from the statement's first."""
        shown = self.line + (line or 1) - 1
        if not self.number:
            return f"line {shown}"
        return f"statement {self.number}, line {shown}{f' of {self.origin}' if self.origin else ''}"

    def title(self) -> str:
        """Returns its number and how it begins, for a heading of its result; letters of secrets are hidden."""
        text = concealed(self.text)
        first = next(scan(text), None)
        words = " ".join(text[first.start :].split()) if first else ""
        return f"[{self.number}] {textwrap.shorten(words, TITLE_LETTERS_MAX, placeholder=' …')}"


def statements(texts: Iterable[Text]) -> list[Statement]:
    """Returns all statements of the texts, in order."""
    found: list[Statement] = []
    without_origin = 0
    for text in texts:
        before = 0 if text.origin else without_origin
        fragments = split(text.content)
        found += [Statement(f.text, number, f.line, text.origin) for number, f in enumerate(fragments, before + 1)]
        without_origin += 0 if text.origin else len(fragments)
    return found


def typed(text: str) -> list[Statement]:
    """Returns the statements of one input at a prompt; a single one has no number."""
    found = statements([Text(text)])
    return found if len(found) > 1 else [replace(statement, number=0) for statement in found]


def open_end(statement: Statement) -> Problem | None:
    """Returns what is wrong with a statement that never ends: a string, comment or BEGIN without its end."""
    text = statement.text
    token = unterminated(tokenize(text))
    if token is not None:
        line, column = line_and_column(text, token.start)
        what = unterminated_what(token)
        message, hint = f"the {what} that starts here is never closed", ""
        if what == "quoted name":
            hint = "close it with `"
    elif split(text + "\n;")[-1].terminated:
        return None
    else:
        line, column = 1, 1
        message, hint = "the block that starts here is never closed", "END; closes it"
    return Problem(f"[SYNTAX_ERROR] {message}", hint, line, column, ERROR_CLASSES["SYNTAX_ERROR"].sqlstate)
