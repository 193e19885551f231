"""Spark SQL's lexical rules: text to tokens that know their offsets, string literals to values and back.

Why not sqlglot's tokenizer: seen on 30.30, it gives wrong offsets inside `/*+ hints */`, reads `$x$` as a parameter and
takes SHOW as one string. Splicing needs offsets that are right for every text, and `SqlBaseLexer.g4` of Spark 4.2 is
short enough to be written down here: one regular expression, and two scans for what a regular expression cannot do
(nested comments, dollar quotes). Where Spark's lexer says "unrecognized", so do we, one character at a time; only a
quote, comment or dollar quote that is never closed becomes one token up to the end of the text. The one addition is
`$` inside a word (METADATA$ACTION), which Spark has no token for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import NamedTuple

NameParts = tuple[str, ...]
"""A name: its parts, without dots and quotes."""


@dataclass(frozen=True)
class Span:
    """A piece of the statement's text: offsets [start, end) in characters, and where it starts (from 1)."""

    start: int
    end: int
    line: int
    column: int


class TokenType(Enum):
    """What a token is."""

    WORD = "word"
    BACKQUOTED = "backquoted name"
    STRING = "string"
    DOUBLE_QUOTED = "double-quoted string"
    NUMBER = "number"
    SYMBOL = "symbol"
    DOLLAR_QUOTED = "dollar-quoted text"
    UNTERMINATED = "unterminated"
    END = "end of the statement"


class Token(NamedTuple):
    """A piece of the text: offsets [start, end).

    `key` is what keywords are compared with: upper case for words of ASCII letters, the text itself for symbols, empty
    for all that is quoted.
    """

    type: TokenType
    text: str
    start: int
    end: int
    key: str


_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\n\f\r\x0b\xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+ | --(?:\\\n|[^\r\n])*)
    | (?P<comment>/\*(?!\+))
    | (?P<string>[rR]'[^']*' | [rR]"[^"]*" | '[^'\\]*(?:(?:\\.|'')[^'\\]*)*')
    | (?P<double>"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")
    | (?P<backquoted>`[^`]*(?:``[^`]*)*`)
    | (?P<dollar>\$[A-Za-z]*\$)
    | (?P<number>
          (?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[dDfF])?(?![A-Za-z0-9_])
        | [0-9]+(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[dDfFlLsSyY])?(?!\w)
      )
    | (?P<word>[^\W\d_]+://[\w/\-.?=&\#%]+ | \w+(?:\$(?![A-Za-z]*\$)\w+)*)
    | (?P<symbol>=>|::|<=>|->|\|>|\|\||==|/\*\+|\*/)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_TOKEN_TYPES = {
    "string": TokenType.STRING,
    "double": TokenType.DOUBLE_QUOTED,
    "backquoted": TokenType.BACKQUOTED,
    "number": TokenType.NUMBER,
    "word": TokenType.WORD,
    "symbol": TokenType.SYMBOL,
}
_OPENERS = {"'": "string", '"': "string", "`": "quoted name"}


def scan(text: str) -> Iterator[Token]:
    """Yields the tokens of the text, one by one; whitespace and comments are skipped. Never raises."""
    position, size = 0, len(text)
    match = _TOKEN.match
    while position < size:
        found = match(text, position)
        group = found.lastgroup if found else None
        end = found.end() if found else position + 1
        if group == "space":
            position = end
            continue
        if group == "comment":
            end = _comment_end(text, end)
            if end < 0:
                yield _token(TokenType.UNTERMINATED, text, position, size)
                return
            position = end
            continue
        if group == "dollar":
            tag = text[position:end]
            closing = text.find(tag, end)
            if closing < 0:
                yield _token(TokenType.UNTERMINATED, text, position, size)
                return
            end = closing + len(tag)
            yield _token(TokenType.DOLLAR_QUOTED, text, position, end)
        elif group is None and text[position] in _OPENERS:
            yield _token(TokenType.UNTERMINATED, text, position, size)
            return
        else:
            yield _token(_TOKEN_TYPES[group] if group else TokenType.SYMBOL, text, position, end)
        position = end


def _token(token_type: TokenType, text: str, start: int, end: int) -> Token:
    piece = text[start:end]
    if token_type is TokenType.WORD:
        # Only ASCII: str.upper makes S of a long s and K of a Kelvin sign, and the prefilter would not see the keyword.
        return Token(token_type, piece, start, end, piece.upper() if piece.isascii() else piece)
    return Token(token_type, piece, start, end, piece if token_type is TokenType.SYMBOL else "")


def _comment_end(text: str, position: int) -> int:
    """Returns where the comment that was opened just before `position` ends; -1 when it does not. Comments nest."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, position):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return -1


def tokenize(text: str) -> list[Token]:
    """Returns all tokens of one statement, without the semicolons that close it, and a last one of token_type END."""
    tokens = list(scan(text))
    while tokens and tokens[-1].key == ";":
        tokens.pop()
    end = tokens[-1].end if tokens else len(text)
    tokens.append(Token(TokenType.END, "", end, end, ""))
    return tokens


def head(text: str, size: int) -> list[Token]:
    """Returns the first tokens, as many as `size`, and one of token_type END."""
    tokens = list(islice(scan(text), size))
    end = tokens[-1].end if tokens else len(text)
    return [*tokens, Token(TokenType.END, "", end, end, "")]


def unterminated(tokens: list[Token]) -> Token | None:
    """Returns the token that is never closed, if there is one: always the last before END."""
    last = tokens[-2] if len(tokens) > 1 else tokens[-1]
    return last if last.type is TokenType.UNTERMINATED else None


def unterminated_what(token: Token) -> str:
    """Returns what an UNTERMINATED token began as, in words."""
    return _OPENERS.get(token.text[0], "comment" if token.text.startswith("/*") else "dollar-quoted text")


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def span(text: str, start: int, end: int) -> Span:
    """Returns the piece [start, end) of the text, with its line and column."""
    line, column = line_and_column(text, start)
    return Span(start, end, line, column)


_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, plain = match.groups()
    if plain is not None:
        return _ESCAPED.get(plain, plain)
    code = int(octal, 8) if octal else int(short or long, 16)
    return chr(code) if code < 0x110000 else match.group()


def string_value(token: Token) -> str:
    """Returns the value of a STRING or DOUBLE_QUOTED token, by Spark's rules (SparkParserUtils.unescapeSQLString)."""
    text = token.text
    if text[0] in "rR":
        return text[2:-1]
    quote = text[0]
    value = _ESCAPE.sub(_unescape, text[1:-1].replace(quote * 2, quote))
    # '\uD83D\uDE00' is one character for Java; a lone surrogate cannot be stored, so it becomes U+FFFD.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _SURROGATE.search(value) else value


def quote_string(value: str) -> str:
    """Returns the value as a Spark string literal in single quotes, safe to splice into SQL text."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def name_part(token: Token) -> str | None:
    """Returns the part of a name that a token spells: bare or backquoted; None for all other tokens."""
    if token.type is TokenType.WORD:
        return token.text
    return token.text[1:-1].replace("``", "`") if token.type is TokenType.BACKQUOTED else None
