"""Spelling of the source system that sqlglot does not read, and clauses that streamql's parser takes for something else."""

from __future__ import annotations

from itertools import pairwise

from streamql.dialect.cursor import Cursor
from streamql.dialect.splices import Splice, apply
from streamql.dialect.tokens import TokenType, string_value
from streamql.translate.model import System


def spelled(text: str, system: System) -> tuple[str, tuple[str, ...]]:
    """Returns the statement without words that sqlglot does not read there, and notes on what was left out."""
    if system is System.CLICKZETTA:
        return text, ()
    cursor = Cursor(text)
    grants = _grants_of_clone(cursor)
    nulls = _nullable_casts(cursor) if system is System.DATABEND else []
    notes = ("COPY GRANTS was left out: permissions are those of the catalog and the storage",) if grants else ()
    return apply(text, [*grants, *nulls]).rstrip() if grants or nulls else text, notes


def _grants_of_clone(cursor: Cursor) -> list[Splice]:
    tokens = cursor.tokens
    if tokens[0].key != "CREATE" or "CLONE" not in [token.key for token in tokens]:
        return []
    return [
        Splice(token.start, following.end, "")
        for token, following in pairwise(tokens)
        if (token.key, following.key) == ("COPY", "GRANTS")
    ]


def _nullable_casts(cursor: Cursor) -> list[Splice]:
    """Returns the places of NULL and NOT NULL behind the type in Databend's CAST (x AS type NULL)."""
    splices: list[Splice] = []
    for opening, closing in cursor.closers.items():
        before, last = cursor.tokens[opening - 1], cursor.tokens[closing - 1]
        if opening == 0 or before.key not in ("CAST", "TRY_CAST") or last.key != "NULL" or closing - opening < 5:
            continue
        end_of_type = cursor.tokens[closing - (3 if cursor.tokens[closing - 2].key == "NOT" else 2)].end
        splices.append(Splice(end_of_type, last.end, ""))
    return splices


def schedule_in_properties(text: str) -> str:
    """Returns the value of the property target_lag, which does not schedule refreshes here; empty: the statement has none."""
    tokens = Cursor(text).tokens
    for index, token in enumerate(tokens[:-2]):
        if (
            token.type is TokenType.STRING
            and string_value(token).lower() == "target_lag"
            and tokens[index + 1].key == "="
        ):
            return (
                string_value(tokens[index + 2])
                if tokens[index + 2].type is TokenType.STRING
                else tokens[index + 2].text
            )
    return ""
