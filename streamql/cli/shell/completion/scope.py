"""Where in a statement the cursor stands, and which tables the statement names. Pure, and content with unfinished statements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from streamql.cli.shell.completion.words import keywords
from streamql.dialect.text.tokens import Token, TokenType, name_part, scan

_BEFORE_TABLE = frozenset(("FROM", "JOIN", "INTO", "USING", "UPDATE", "TABLE", "OVERWRITE"))
_ENDS_FROM = frozenset(
    ("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "ON", "SET", "WHEN", "SELECT", "VALUES", "UNION", "QUALIFY")
)


@dataclass(frozen=True)
class Place:
    """The cursor's: the tokens of its statement before the word it is in, and of the whole statement.

    `word`: that word as far as it is typed; `quote`: what opened it, ` or ' or empty; `path`: the names before it, each with a dot.
    `start`: where in the text before the cursor the word begins, with its quote.
    """

    before: Sequence[Token]
    statement: Sequence[Token]
    word: str
    quote: str
    path: Sequence[str]
    start: int

    def key(self, back: int = 1) -> str:
        """Returns the keyword or symbol so many tokens before the word; empty: there is none."""
        return self.before[-back].key if 0 < back <= len(self.before) else ""

    def keys(self, count: int) -> tuple[str, ...]:
        """Returns the last `count` of them."""
        return tuple(token.key for token in self.before[-count:]) if count <= len(self.before) else ()


@dataclass(frozen=True)
class Named:
    """A table that a statement names, by which name its columns go: the alias, or its own."""

    parts: tuple[str, ...]
    alias: str


def place(before: str, after: str) -> Place | None:
    """Returns the cursor's place between the two texts; None: in a comment, in a number, behind a closed quote, where nothing is to be
    offered."""
    tokens = list(scan(before))
    last = tokens[-1] if tokens else None
    if "--" in before[last.end if last else 0 :].rpartition("\n")[2]:
        return None
    word, quote, start = "", "", len(before)
    if last is not None and last.end == len(before):
        if last.type is TokenType.UNTERMINATED:
            if last.text[0] not in "`'":
                return None
            word, quote, start = last.text[1:], last.text[0], last.start
            tokens.pop()
        elif last.type is TokenType.WORD:
            word, start = last.text, last.start
            tokens.pop()
        elif last.type is not TokenType.SYMBOL:
            return None
    tokens = _current(tokens)
    statement = [*tokens, *_first(after.partition(quote)[2])] if quote else _around(before, after)
    path: list[str] = []
    while len(tokens) > 1 and tokens[-1].key == "." and (part := name_part(tokens[-2])) is not None:
        path.insert(0, part)
        tokens = tokens[:-2]
    return Place(tokens, statement, word, quote, path, start)


def _around(before: str, after: str) -> list[Token]:
    """Returns the tokens of the statement that the cursor is in."""
    found: list[Token] = []
    for token in scan(before + after):
        if token.key == ";":
            if token.start >= len(before):
                break
            found = []
        else:
            found.append(token)
    return found


def _first(text: str) -> list[Token]:
    """Returns the tokens up to the first semicolon."""
    return list(itertools.takewhile(lambda token: token.key != ";", scan(text)))


def _current(tokens: list[Token]) -> list[Token]:
    """Returns the tokens behind the last semicolon."""
    for index in range(len(tokens) - 1, -1, -1):
        if tokens[index].key == ";":
            return tokens[index + 1 :]
    return tokens


def tables(statement: Sequence[Token]) -> list[Named]:
    """Returns the tables, views and streams that a statement names, in order; CTEs too, which the catalog does not know."""
    found: list[Named] = []
    index, in_from = 0, [False]
    while index < len(statement):
        key = statement[index].key
        if key == "(":
            in_from.append(False)
        elif key == ")":
            if len(in_from) > 1:
                in_from.pop()
        elif key in _ENDS_FROM:
            in_from[-1] = False
        if key in _BEFORE_TABLE or (key == "," and in_from[-1]):
            in_from[-1] = in_from[-1] or key in ("FROM", "JOIN")
            named, index = _named(statement, index + 1)
            if named is not None:
                found.append(named)
            continue
        index += 1
    return found


def ctes(statement: Sequence[Token]) -> list[str]:
    """Returns the names that WITH gives to queries."""
    if not statement or statement[0].key != "WITH":
        return []
    return [
        name
        for before, name_token, following, opening in zip(
            statement, statement[1:], statement[2:], statement[3:], strict=False
        )
        if before.key in ("WITH", ",", "RECURSIVE")
        and following.key == "AS"
        and opening.key == "("
        and (name := name_part(name_token)) is not None
    ]


def _named(statement: Sequence[Token], index: int) -> tuple[Named | None, int]:
    """Returns a name with its alias at `index`, and where it ends."""
    while index < len(statement) and statement[index].key in ("TABLE", "STREAM", "IF", "EXISTS", "NOT"):
        index += 1
    parts: list[str] = []
    while index < len(statement):
        token = statement[index]
        part = name_part(token)
        if part is None or (not parts and token.key in keywords()):
            break
        parts.append(part)
        index += 1
        if index >= len(statement) or statement[index].key != ".":
            break
        index += 1
    if not parts:
        return None, index
    if index < len(statement) and statement[index].key == "(":  # a function, or the columns of INSERT INTO t (
        return Named(tuple(parts), parts[-1]), index
    alias = parts[-1]
    if index < len(statement) and statement[index].key == "AS":
        index += 1
    if index < len(statement) and statement[index].key not in keywords():
        given = name_part(statement[index])
        if given is not None:
            alias, index = given, index + 1
    return Named(tuple(parts), alias), index
