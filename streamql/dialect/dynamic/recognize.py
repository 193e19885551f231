"""Whether the first words of a text are those of a statement about dynamic tables or materialized views."""

from __future__ import annotations

from collections.abc import Callable

from streamql.dialect.dynamic.about import (
    parse_describe_dynamic,
    parse_drop_dynamic,
    parse_explain_refresh,
    parse_refresh_dynamic,
    parse_show_create_dynamic,
    parse_show_dynamic,
    parse_show_history,
    parse_verify_dynamic,
)
from streamql.dialect.dynamic.alter import parse_alter_dynamic
from streamql.dialect.dynamic.create import parse_create_dynamic
from streamql.dialect.dynamic.refused import MODIFIERS, OTHER_VERBS
from streamql.dialect.dynamic.statements import (
    AlterDynamicTable,
    CreateDynamicTable,
    DescribeDynamicTable,
    DropDynamicTable,
    ExplainRefresh,
    RefreshDynamicTable,
    ShowCreateDynamicTable,
    ShowDynamicTables,
    ShowRefreshHistory,
    VerifyDynamicTable,
)
from streamql.dialect.dynamic.words import LISTS, at_type
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import EXPLAIN_OPTIONS

_Statement = (
    CreateDynamicTable
    | DropDynamicTable
    | AlterDynamicTable
    | RefreshDynamicTable
    | VerifyDynamicTable
    | ExplainRefresh
    | ShowDynamicTables
    | ShowRefreshHistory
    | DescribeDynamicTable
    | ShowCreateDynamicTable
)
_Parse = Callable[[Cursor], _Statement]


def recognize_dynamic(cursor: Cursor) -> _Parse | None:
    """Returns the function that parses the statement; None: it is about something else. Starts at the first token, and moves the cursor."""
    verb = cursor.advance().key
    if verb == "CREATE":
        return _recognize_create(cursor)
    if verb == "SHOW":
        return _recognize_show(cursor)
    if verb in ("DESC", "DESCRIBE"):
        return _recognize_describe(cursor)
    if verb == "EXPLAIN":
        if cursor.at_any(EXPLAIN_OPTIONS):
            cursor.advance()
        return parse_explain_refresh if cursor.take("REFRESH") and at_type(cursor) else None
    return _PLAIN[verb] if verb in _PLAIN and at_type(cursor) else None


_PLAIN: dict[str, _Parse] = {
    "DROP": parse_drop_dynamic,
    "ALTER": parse_alter_dynamic,
    "REFRESH": parse_refresh_dynamic,
    "VERIFY": parse_verify_dynamic,
}
DYNAMIC_VERBS = ("CREATE", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", *_PLAIN)
"""The first words of the statements."""


def _recognize_create(cursor: Cursor) -> _Parse | None:
    if cursor.at("OR") and cursor.key(1) in ("REPLACE", *OTHER_VERBS):
        cursor.index += 2
    if cursor.at_any(MODIFIERS):
        cursor.advance()
    return parse_create_dynamic if at_type(cursor) or cursor.at("DYNAMIC", "ICEBERG", "TABLE") else None


def _recognize_show(cursor: Cursor) -> _Parse | None:
    if any(cursor.at(*keywords) for keywords in LISTS):
        return parse_show_dynamic
    if cursor.take("CREATE"):
        return parse_show_create_dynamic if at_type(cursor) else None
    return parse_show_history if at_type(cursor) and cursor.key(2) == "REFRESH" else None


def _recognize_describe(cursor: Cursor) -> _Parse | None:
    if not at_type(cursor):
        return None
    cursor.index += 2
    # Without a name it is a column of a table that is named dynamic, or materialized.
    return parse_describe_dynamic if cursor.at_name() and not cursor.at("AS", "JSON") else None
