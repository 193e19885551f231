"""Constructs that streamql's parser or sqlglot would refuse with a reason that leads nowhere: they are refused before, by name."""

from __future__ import annotations

from itertools import pairwise

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import TokenType
from streamql.features.translate.model import NotTranslatedError, System
from streamql.features.translate.wording import LEAVE_OUT, NO_RESULTS, POINT_WORDS

_POINTS = {"SNAPSHOT": "Delta tables have versions, not snapshots", "TAG": "Delta tables have versions, without tags"}
_INCREMENT = "CREATE STREAM on each source, and write the MERGE into a script that streamql run --when-has-data runs"
_SAMPLED = "SELECT … FROM (SELECT * FROM t TABLESAMPLE (10 PERCENT)) ORDER BY rand() LIMIT 5"
_SCHEMAS = "ALTER TABLE … SET PROPERTIES (…) for each table of the schema"


def check_constructs(text: str, system: System) -> None:
    """Raises NotTranslatedError for such a construct."""
    cursor = Cursor(text)
    keys = [token.key for token in cursor.tokens]
    for index, key in enumerate(keys[:-3]):
        if key in POINT_WORDS and keys[index + 1] == "(" and keys[index + 2] in _POINTS and keys[index + 3] == "=>":
            why = _POINTS[keys[index + 2]]
            raise NotTranslatedError(
                f"{key} ({keys[index + 2]} => …): {why}", "AT (VERSION => n) or AT (TIMESTAMP => …)"
            )
    if keys[:3] == ["USE", "SECONDARY", "ROLES"]:
        raise NotTranslatedError("USE SECONDARY ROLES: Spark has no roles", LEAVE_OUT)
    if system is System.SNOWFLAKE and _pipes(cursor):
        hint = "SHOW STREAMS WHERE condition, or SELECT … FROM streamql.streams" if "STREAMS" in keys[:3] else ""
        raise NotTranslatedError(f"->>: {NO_RESULTS}", hint)
    if any(
        a.key == b.key == c.key == "."
        for a, b, c in zip(cursor.tokens, cursor.tokens[1:], cursor.tokens[2:], strict=False)
    ):
        raise NotTranslatedError("... stands for something that is left out here", "write the statement in full")
    if system is System.DATABEND and _is_sampled_twice(cursor):
        raise NotTranslatedError("SAMPLE BLOCK (…) ROW (…): Spark samples a table once", _SAMPLED)
    if system is System.DATABEND and (name := _parametric(cursor)):
        raise NotTranslatedError(f"{name}(…)(…): Spark's functions have one list of arguments", "use another function")
    if keys[0] == "CREATE" and "DYNAMIC" in keys[1:5] and ("REFRESH", "USING") in pairwise(keys):
        raise NotTranslatedError(
            "REFRESH USING: a refresh computes the query of the table, and runs no MERGE", _INCREMENT
        )
    if keys[0] == "ALTER" and keys[1] in ("SCHEMA", "DATABASE"):
        raise NotTranslatedError(
            f"ALTER {keys[1]}: Spark neither renames schemas, nor keeps settings of their tables", _SCHEMAS
        )


def _is_sampled_twice(cursor: Cursor) -> bool:
    """Returns whether SAMPLE BLOCK (…) ROW (…) chooses blocks and then rows of them."""
    return any(
        before.key == "BLOCK" and cursor.tokens[opening - 2].key == "SAMPLE" and cursor.tokens[closing + 1].key == "ROW"
        for opening, closing in cursor.closers.items()
        if opening > 1 and (before := cursor.tokens[opening - 1])
    )


def _parametric(cursor: Cursor) -> str:
    """Returns the name of a function with two lists of arguments, such as quantile_cont(0.5)(x); empty: there is none."""
    for opening, closing in cursor.closers.items():
        name, following = cursor.tokens[opening - 1], cursor.tokens[closing + 1]
        is_call = opening > 0 and name.type is TokenType.WORD and name.end == cursor.tokens[opening].start
        if is_call and following.key == "(" and following.start == cursor.tokens[closing].end:
            return name.text
    return ""


def _pipes(cursor: Cursor) -> bool:
    """Returns whether Snowflake's operator ->> stands between two statements."""
    tokens = cursor.tokens
    return any(a.key == "->" and b.key == ">" and a.end == b.start for a, b in pairwise(tokens)) or any(
        token.key == "->>" for token in tokens
    )
