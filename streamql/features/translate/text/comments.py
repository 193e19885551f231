"""Comments of a script: as Spark reads them, those that a translation has lost, and statements that become comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from streamql.dialect.text.tokens import Token, TokenType, scan
from streamql.features.translate.model import System

_OTHER = (
    r"(?P<block>/\*.*?(?:\*/|\Z))|(?P<other>'(?:\\.|''|[^'\\])*'|\"(?:\"\"|[^\"])*\"|`[^`]*`|\$\$.*?\$\$|\w+://\S*)"
)
_PIECE = re.compile(rf"(?P<line>--[^\r\n]*)|{_OTHER}", re.DOTALL)
_SNOWFLAKE_PIECE = re.compile(rf"(?P<line>(?:--|//)[^\r\n]*)|{_OTHER}", re.DOTALL)
_COMMENT = re.compile(r"--[^\r\n]*|/\*.*?\*/", re.DOTALL)


def to_spark_comments(text: str, system: System) -> str:
    """Returns the script with comments that Spark reads as the source system does. Its length does not change.

    `//` begins a comment in Snowflake, and divides in Databend. A backslash at the end of a comment would make Spark read the next line
    as part of it. `/*` inside a comment would open a second one.
    """
    pattern = _SNOWFLAKE_PIECE if system is System.SNOWFLAKE else _PIECE
    return pattern.sub(_respelled, text)


def _respelled(match: re.Match[str]) -> str:
    piece = match.group()
    if match.lastgroup == "line":
        return "--" + piece[2:-1] + "/" if piece.endswith("\\") else "--" + piece[2:]
    if match.lastgroup == "block":
        return "/*" + piece[2:].replace("/*", "//")
    return piece


def comments(text: str) -> list[str]:
    """Returns the comments of a statement or of the text between two, in their order."""
    found: list[str] = []
    end = 0
    for token in (*scan(text), Token(TokenType.END, "", len(text), len(text), "")):
        found += _COMMENT.findall(text[end : token.start])
        end = token.end
    return found


def without_semicolons(gap: str) -> str:
    """Returns the text between two statements without its semicolons outside comments."""
    pieces: list[str] = []
    end = 0
    for found in _COMMENT.finditer(gap):
        pieces += (gap[end : found.start()].replace(";", ""), found.group())
        end = found.end()
    return "".join((*pieces, gap[end:].replace(";", "")))


def commented(text: str, indent: str = "") -> str:
    """Returns the lines as comments. A space behind a backslash at the end keeps Spark from reading on in the next line."""
    lines = (f"-- {indent}{line}".rstrip() for line in text.splitlines())
    return "\n".join(line + " " if line.endswith("\\") else line for line in lines)


def with_comments(source: str, statements: Sequence[str]) -> tuple[str, ...]:
    """Returns the statements, with the comments of the source that none of them has before the first."""
    written = Counter(_core(comment) for statement in statements for comment in comments(statement))
    lost = []
    for comment in comments(source):
        if written[_core(comment)]:
            written[_core(comment)] -= 1
        elif _core(comment):
            lost.append(commented(_without_marks(comment)))
    if not lost or not statements:
        return tuple(statements)
    return ("\n".join((*lost, statements[0])), *statements[1:])


def _core(comment: str) -> str:
    """Returns the words of a comment: sqlglot moves its marks, its spaces and its lines."""
    return " ".join(_without_marks(comment).split())


def _without_marks(comment: str) -> str:
    return comment.removeprefix("/*").removesuffix("*/").removeprefix("--").strip()
