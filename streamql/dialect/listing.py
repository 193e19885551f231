"""The clauses of SHOW statements that list objects: IN schema, LIKE, WHERE and LIMIT."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts, TokenType


@dataclass(frozen=True)
class Listing:
    """What the clauses say; None: the statement does not have the clause."""

    schema: NameParts | None = None
    like: str | None = None
    where: str | None = None
    limit: int | None = None


def read_listing(cursor: Cursor, statement: str, listed: str) -> Listing:
    """Reads all clauses up to the end of the statement, in any order. `statement`, `listed`: its keywords and what it lists, for errors.

    Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE.
    """
    show = Listing()
    while not cursor.at_end() and not cursor.at(";"):
        show = _clause(cursor, show, statement, listed)
    return show


def _clause(cursor: Cursor, show: Listing, statement: str, listed: str) -> Listing:
    """Returns the clauses so far and the next one; Snowflake's order (LIKE before IN) is as good as ours."""
    if cursor.at("STARTS", "WITH"):
        raise cursor.refused("STARTS WITH", f"{statement} has patterns", "write LIKE 'prefix%'")
    if cursor.at_any(("IN", "FROM")) and show.schema is None:
        return replace(show, schema=cursor.schema(listed, ("LIKE", "WHERE", "LIMIT")))
    if cursor.at_any(("LIKE", "WHERE")) and (show.like is not None or show.where is not None):
        raise cursor.error(
            f"{statement} takes one LIKE or one WHERE", hint="put both conditions into WHERE: name LIKE 'pattern' AND …"
        )
    if cursor.take("LIKE"):
        return replace(show, like=cursor.string("the pattern"))
    if cursor.at("WHERE"):
        return replace(show, where=read_where(cursor))
    if cursor.at("LIMIT") and show.limit is None:
        return replace(show, limit=read_limit(cursor))
    if cursor.at_any(("IN", "FROM", "LIMIT")):
        raise cursor.error(f"{cursor.key()} is given twice")
    raise cursor.expected("IN, LIKE, WHERE or LIMIT")


def read_where(cursor: Cursor) -> str:
    """Returns the condition after WHERE, which comes next, up to LIMIT or the end."""
    cursor.expect("WHERE")
    return cursor.raw("a condition", lambda: _at_limit(cursor))


def read_limit(cursor: Cursor) -> int:
    """Returns the number after LIMIT, which comes next."""
    cursor.expect("LIMIT")
    limit = cursor.integer()
    if limit is None:
        raise cursor.expected("a number of rows", "write LIMIT 10")
    return limit


def _at_limit(cursor: Cursor) -> bool:
    return cursor.at("LIMIT") and cursor.tokens[min(cursor.index + 1, len(cursor.tokens) - 1)].type is TokenType.NUMBER
