"""SQL with its results, as the pages have it, for Pygments: statements have the shell's colours, and results have none.

Pygments' own SQL lexer reads results as SQL. It colours a change type DELETE, and takes the apostrophe of a message for the start of a
string.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import ClassVar

from pygments import lexers
from pygments.lexer import Lexer
from pygments.lexers import _mapping
from pygments.token import Comment, Generic, Keyword, Name, Number, String, Text, _TokenType

from streamql.cli.shell.highlight import pieces

_TOKENS = {
    "keyword": Keyword,
    "function": Name.Function,
    "string": String,
    "number": Number,
    "comment": Comment,
    "name": Name,
}
_MESSAGES = ("ERROR", "Hint:")


class Transcript(Lexer):
    """Statements, and below them tables (Generic.Output) or messages (Generic.Error)."""

    name = "SQL with results"
    aliases: ClassVar[list[str]] = ["sql"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        """See Lexer."""
        position = 0
        for token, lines in itertools.groupby(text.splitlines(keepends=True), _token_of_line):
            joined = "".join(lines)
            found = pieces(joined) if token is Text else [("", joined)]
            for style, piece in found:
                yield position, _TOKENS.get(style, token), piece
                position += len(piece)


def register() -> None:
    """Makes this the lexer of blocks named `sql`."""
    _mapping.LEXERS["SqlLexer"] = (__name__, Transcript.name, ("sql",), (), ())
    lexers._lexer_cache[Transcript.name] = Transcript


def _token_of_line(line: str) -> _TokenType:
    if line[:1] in ("+", "|"):
        return Generic.Output
    return Generic.Error if line.startswith(_MESSAGES) else Text
