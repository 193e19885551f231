"""From -e, -f and stdin to numbered statements."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streamql.cli.options import Input
from streamql.cli.problems import Problem
from streamql.dialect.splitting import split
from streamql.dialect.tokens import line_and_column, tokenize, unterminated, unterminated_what
from streamql.errors import ERROR_CLASSES

_FOREIGN_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK": "a zip file", b"\x1f\x8b": "a gzip file"}


class UsageError(Exception):
    """The command cannot start: a file that is missing or is no text, a directory that cannot be made."""


@dataclass(frozen=True)
class Statement:
    """One statement: `number` counts within its file, or over all -e; `line` is where it starts in the file or -e.

    `origin` is the file's name; empty where there is nothing to tell apart.
    """

    text: str
    number: int = 1
    line: int = 1
    origin: str = ""

    def place(self, line: int | None = None) -> str:
        """Where it is, in words; `line` counts from the statement's first."""
        shown = self.line + (line or 1) - 1
        return f"statement {self.number}, line {shown}{f' of {self.origin}' if self.origin else ''}"


def statements(inputs: Iterable[Input]) -> list[Statement]:
    """All statements of the inputs, in order. Raises UsageError for a file that cannot be read."""
    found: list[Statement] = []
    number_e = 0
    for source in inputs:
        if source.kind == "text":
            texts = list(_statements(source.value, "", number_e))
            number_e += len(texts)
        elif source.kind == "stdin":
            texts = list(_statements(_decoded(_stdin_bytes(), "standard input"), ""))
        else:
            texts = list(_statements(_decoded(_file_bytes(source.value), source.value), source.value))
        found += texts
    return found


def open_end(statement: Statement) -> Problem | None:
    """What is wrong with a statement that never ends: a string, comment or BEGIN without its end."""
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


def _statements(script: str, origin: str, before: int = 0) -> Iterator[Statement]:
    for number, fragment in enumerate(split(script), before + 1):
        yield Statement(fragment.text, number, fragment.line, origin)


def _stdin_bytes() -> bytes:
    buffer = getattr(sys.stdin, "buffer", None)
    return buffer.read() if buffer is not None else sys.stdin.read().encode()


def _file_bytes(name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except IsADirectoryError:
        raise UsageError(f"{name} is a directory; -f takes a file of SQL statements") from None
    except OSError as e:
        raise UsageError(f"cannot read {name}: {e.strerror or e}") from None


def _decoded(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        foreign = next((what for mark, what in _FOREIGN_MARKS.items() if content.startswith(mark)), None)
        if foreign is not None:
            raise UsageError(f"{name} is {foreign}; SQL is read as UTF-8") from None
        line = content.count(b"\n", 0, e.start) + 1
        raise UsageError(f"{name} is not UTF-8: byte 0x{content[e.start]:02x} in line {line}") from None
    if "\0" in text:
        raise UsageError(f"{name} is not a text: it holds NUL bytes")
    return text.replace("\r\n", "\n")
