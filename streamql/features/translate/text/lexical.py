"""Tokens of other systems as Spark has them: names in double quotes, session variables; and whether two texts have the same tokens."""

from __future__ import annotations

from itertools import pairwise

from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import TokenType, scan
from streamql.features.translate.model import NotTranslatedError
from streamql.names import quote


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


_TIMES = (("'",), ("TIMESTAMP", "'"), ("TIMESTAMP", "(", "'", ")"), ("TO_TIMESTAMP", "(", "'", ")"))
"""Literals of times, with ' in the place of the text."""


def time_literal(text: str) -> str | None:
    """Returns the text of a time that is a literal or the cast of one, in quotes; None: it is another expression."""
    tokens = [token for token in scan(text) if token.type is not TokenType.END]
    keys = tuple("'" if token.type is TokenType.STRING else token.key for token in tokens)
    is_cast = keys[:4] == ("CAST", "(", "'", "AS") and keys[-1] == ")" and len(keys) == _SIZE_OF_CAST
    return tokens[keys.index("'")].text if is_cast or keys in _TIMES else None


_SIZE_OF_CAST = 6
_OPTIONAL = frozenset(("AS", "OUTER", "INNER", ";"))


def is_same_sql(one: str, other: str) -> bool:
    """Returns whether two texts have the same tokens, but for letter case, and words that Spark can do without."""
    return _essence(one) == _essence(other)


def _essence(text: str) -> list[str]:
    return [token.key or token.text for token in scan(text) if token.key not in _OPTIONAL]
