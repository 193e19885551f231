"""Which tables and streams a script reads and writes, by its text: for `streamql run --when-has-data` and the picture of a report.

A name counts as read if it stands where SQL names a table that is read: behind FROM, JOIN, USING or TABLE, behind a comma, or behind an
opening parenthesis. So a stream is rather taken in too often than left out. Text that EXECUTE IMMEDIATE is given as a literal counts
as well. A stream that is read through a view is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from streamql.dialect.text.tokens import Token, TokenType, name_part, string_value, tokenize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState

Parts = tuple[str, ...]

_BEFORE_A_TABLE = frozenset(("FROM", "JOIN", "USING", "TABLE", ",", "("))
_BEFORE_A_TARGET = frozenset(("INTO", "OVERWRITE", "UPDATE", "REFRESH", "CREATE"))
_BETWEEN = frozenset(("OR", "REPLACE", "DYNAMIC", "MATERIALIZED", "TABLE", "VIEW", "IF", "NOT", "EXISTS"))
"""Words between such a word and the name."""


def names_read(texts: Iterable[str]) -> list[Parts]:
    """Returns the names of what the statements may read, in lower case, each once."""
    return list(dict.fromkeys(name for text in texts for name in _names(text)))


def names_written(texts: Iterable[str]) -> list[Parts]:
    """Returns the names of what the statements may write or refresh, in lower case, each once."""
    return list(dict.fromkeys(name for text in texts for name in _targets(text)))


def databases_used(texts: Iterable[str]) -> list[str]:
    """Returns the databases that the statements make the current one, in lower case."""
    used = []
    for text in texts:
        tokens = _words(text)
        if tokens and tokens[0].key == "USE":
            start = 2 if len(tokens) > 2 and tokens[1].key in ("DATABASE", "SCHEMA", "NAMESPACE") else 1
            if name := _name_at(tokens, start):
                used.append(name[-1])
    return list(dict.fromkeys(used))


def streams_read(spark: SparkSession, texts: Sequence[str]) -> list[StreamState]:
    """Returns the streams that the statements read, of those there are now. Unqualified names are looked for in each database that the
    script uses. Raises CATALOG_UNREADABLE."""
    from streamql.catalog.store import catalog_of

    here = (spark.catalog.currentDatabase().lower(), *databases_used(texts))
    wanted = {(d, name[0]) if len(name) == 1 else name[-2:] for name in names_read(texts) for d in here}
    return [s for s in catalog_of(spark).all(spark) if (s.name.schema.lower(), s.name.object.lower()) in wanted]


def _words(text: str) -> list[Token]:
    return [token for token in tokenize(text) if token.type is not TokenType.END]


def _names(text: str) -> Iterator[Parts]:
    tokens = _words(text)
    is_immediate = any(token.key == "IMMEDIATE" for token in tokens)
    for index, token in enumerate(tokens):
        if token.key in _BEFORE_A_TABLE and (name := _name_at(tokens, index + 1)):
            yield name
        if is_immediate and token.type is TokenType.STRING:
            yield from _names(string_value(token))


def _targets(text: str) -> Iterator[Parts]:
    tokens = _words(text)
    keys = [token.key for token in tokens]
    for index, key in enumerate(keys):
        if key in _BEFORE_A_TARGET or (key == "FROM" and index and keys[index - 1] == "DELETE"):
            start = index + 1
            while start < len(tokens) and keys[start] in _BETWEEN:
                start += 1
            if name := _name_at(tokens, start):
                yield name


def _name_at(tokens: Sequence[Token], index: int) -> Parts:
    """Returns the name that stands at `index`, with dots between its parts; empty: none does."""
    parts = []
    while index < len(tokens) and (part := name_part(tokens[index])) is not None:
        parts.append(part.lower())
        if index + 1 >= len(tokens) or tokens[index + 1].key != ".":
            break
        index += 2
    return tuple(parts)
