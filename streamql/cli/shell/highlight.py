"""Statements as coloured pieces. Pure.

The colours are readable on a dark background and on a light one: each has a contrast of at least 4 with black and with white.
"""

from __future__ import annotations

import itertools

from streamql.cli.shell.completion import words
from streamql.cli.shell.completion.vocabulary import FUNCTIONS
from streamql.dialect.text.tokens import TokenType, scan

Piece = tuple[str, str]
"""(style, text); the style is empty, or one of STYLES."""

STYLES = {
    "keyword": "#005fff bold",
    "function": "#008787",
    "string": "#008700",
    "number": "#875fd7",
    "comment": "#767676 italic",
    "name": "#af5f00",
    "open": "#d7005f",
    "prompt": "bold",
    "transaction": "#d7005f bold",
    "starting": "#767676",
}
"""Of the 256 colours that terminals have at least, so that none is taken for another one."""

_STYLES_OF_TOKENS = {
    TokenType.STRING: "string",
    TokenType.DOUBLE_QUOTED: "string",
    TokenType.DOLLAR_QUOTED: "string",
    TokenType.NUMBER: "number",
    TokenType.BACKQUOTED: "name",
    TokenType.UNTERMINATED: "open",
}


def pieces(text: str) -> list[Piece]:
    """Returns the whole text, in order, nothing added or left out."""
    if text.lstrip()[:1] in ("\\", "!"):
        command, space, rest = text.partition(" ")
        return [("keyword", command), ("", space + rest)]
    found: list[Piece] = []
    end = 0
    tokens = list(scan(text))
    keywords, functions = words.keywords(), {name.upper() for name in (*FUNCTIONS, *words.functions())}
    for token, following in itertools.zip_longest(tokens, tokens[1:]):
        if token.start > end:
            found.append(_between(text[end : token.start]))
        style = _STYLES_OF_TOKENS.get(token.type, "")
        if token.type is TokenType.WORD:
            is_called = following is not None and following.key == "("
            style = "function" if is_called and token.key in functions else "keyword" if token.key in keywords else ""
        found.append((style, token.text))
        end = token.end
    if end < len(text):
        found.append(_between(text[end:]))
    return found


def _between(text: str) -> Piece:
    """Whitespace, or comments."""
    return ("comment" if text.strip() else "", text)
