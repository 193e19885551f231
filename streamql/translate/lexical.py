"""Text of other systems by Spark's lexical rules: comments, names in double quotes, session variables."""

from __future__ import annotations

import re
from itertools import pairwise

from streamql.dialect.splices import Splice, apply
from streamql.dialect.tokens import Token, TokenType, scan
from streamql.names import quote
from streamql.translate.model import NotTranslatedError, System

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


def names_in_backquotes(text: str) -> str:
    """Returns the statement with names in backquotes where Snowflake and Databend have double quotes."""
    splices = [
        Splice(token.start, token.end, quote(token.text[1:-1].replace('""', '"')))
        for token in scan(text)
        if token.type is TokenType.DOUBLE_QUOTED
    ]
    return apply(text, splices)


_BEFORE_A_NAME = frozenset(("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "VIEW", "STREAM", "SCHEMA", "DATABASE", "USE"))


def variables_as_names(text: str) -> str:
    """Returns the statement with `session.name` in the place of Snowflake's `$name`: a column called `name` does not hide it.

    Raises NotTranslatedError for `$1`, and for a variable in the place of a name.
    """
    tokens = list(scan(text))
    splices = []
    before = ("", "")
    for dollar, following in pairwise(tokens):
        named, before = before, (before[1], dollar.key)
        if dollar.key != "$" or following.start != dollar.end:
            continue
        if following.type is TokenType.NUMBER:
            raise NotTranslatedError(
                f"columns have names in Spark, and no numbers such as ${following.text}", "name the column"
            )
        if named[1] in _BEFORE_A_NAME or named == ("TABLE", "("):
            raise NotTranslatedError(
                f"${following.text}: a variable stands for a name",
                f"write the name, or IDENTIFIER(session.{following.text})",
            )
        splices.append(Splice(dollar.start, dollar.end, "session."))
    return apply(text, splices)


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


def words(text: str, size: int) -> list[str]:
    """Returns the keys of the first tokens; empty for names in quotes and past the end."""
    keys = [token.key for _, token in zip(range(size), scan(text), strict=False)]
    return keys + [""] * (size - len(keys))


_OPTIONAL = frozenset(("AS", "OUTER", "INNER", ";"))


def is_same_sql(one: str, other: str) -> bool:
    """Returns whether two texts have the same tokens, but for letter case, and words that Spark lets out."""
    return _essence(one) == _essence(other)


def _essence(text: str) -> list[str]:
    return [token.key or token.text for token in scan(text) if token.key not in _OPTIONAL]
