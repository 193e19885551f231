"""Values for the parameters of a statement that Spark's parser, which would put them in, does not understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from streamql.dialect.text.tokens import Token, TokenType, line_and_column, name_part, tokenize
from streamql.errors import StreamqlError


def bind(text: str, values: Mapping[str, str] | Sequence[str]) -> str:
    """Returns the text with each `:name` (a mapping) or `?` (a sequence, in order) replaced by its value, a SQL expression.

    A colon that ends what stands before it does not begin a parameter: STRUCT<a:INT>, column:field. Raises INVALID_ARGUMENT for a parameter
    without a value.
    """
    by_name = isinstance(values, Mapping)
    pieces, done, count = [], 0, 0
    before: Token | None = None
    for token, following in pairwise(tokenize(text)):
        key: str | int | None = None
        if by_name and token.text == ":" and not _belongs(before, token):
            key, end = name_part(following), following.end
        elif not by_name and token.text == "?":
            key, end = count, token.end
            count += 1
        before = token
        if key is None:
            continue
        value = _value(values, key)
        if value is None:
            line, column = line_and_column(text, token.start)
            raise StreamqlError(
                "INVALID_ARGUMENT",
                f"the parameter {text[token.start : end]} has no value",
                hint='spark.sql(text, args={"name": value}) for :name, args=[value, …] for ?',
                line=line,
                column=column,
            )
        pieces += [text[done : token.start], value]
        done = end
    return "".join([*pieces, text[done:]])


def _belongs(before: Token | None, colon: Token) -> bool:
    is_operand = before is not None and (
        before.type in (TokenType.WORD, TokenType.BACKQUOTED) or before.text in (")", "]")
    )
    return is_operand and before is not None and before.end == colon.start


def _value(values: Mapping[str, str] | Sequence[str], key: str | int) -> str | None:
    if isinstance(values, Mapping):
        return values.get(str(key))
    return values[int(key)] if int(key) < len(values) else None
