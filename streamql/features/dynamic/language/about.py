"""DROP, REFRESH, VERIFY, EXPLAIN REFRESH, SHOW and DESCRIBE of dynamic tables and materialized views."""

from __future__ import annotations

from streamql.dialect.listing import read_limit, read_listing, read_where
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts, Span
from streamql.features.dynamic.language.statements import (
    DescribeDynamicTable,
    DropDynamicTable,
    ExplainRefresh,
    RefreshDynamicTable,
    ShowCreateDynamicTable,
    ShowDynamicTables,
    ShowRefreshHistory,
    VerifyDynamicTable,
)
from streamql.features.dynamic.language.words import LISTS, name_of, take_list, take_type

DROP_DYNAMIC_GRAMMAR = "DROP {DYNAMIC TABLE | MATERIALIZED VIEW} [IF EXISTS] name"
REFRESH_DYNAMIC_GRAMMAR = "REFRESH {DYNAMIC TABLE | MATERIALIZED VIEW} name"
VERIFY_DYNAMIC_GRAMMAR = "VERIFY {DYNAMIC TABLE | MATERIALIZED VIEW} name"
EXPLAIN_REFRESH_GRAMMAR = "EXPLAIN REFRESH {DYNAMIC TABLE | MATERIALIZED VIEW} name"
SHOW_DYNAMIC_GRAMMAR = (
    "SHOW {DYNAMIC TABLES | MATERIALIZED VIEWS} [{IN | FROM} schema] [LIKE 'pattern' | WHERE condition] [LIMIT n]"
)
SHOW_HISTORY_GRAMMAR = "SHOW {DYNAMIC TABLE | MATERIALIZED VIEW} REFRESH HISTORY [FOR name] [WHERE condition] [LIMIT n]"
DESCRIBE_DYNAMIC_GRAMMAR = "DESCRIBE {DYNAMIC TABLE | MATERIALIZED VIEW} name"
SHOW_CREATE_DYNAMIC_GRAMMAR = "SHOW CREATE {DYNAMIC TABLE | MATERIALIZED VIEW} name"


def parse_drop_dynamic(cursor: Cursor) -> DropDynamicTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = DROP_DYNAMIC_GRAMMAR
    cursor.expect("DROP")
    is_view = take_type(cursor)
    if_exists = cursor.take("IF", "EXISTS")
    name, name_span = cursor.name(name_of(is_view))
    return DropDynamicTable(name, is_view, if_exists, name_span)


def parse_refresh_dynamic(cursor: Cursor) -> RefreshDynamicTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = REFRESH_DYNAMIC_GRAMMAR
    cursor.expect("REFRESH")
    return RefreshDynamicTable(*_named(cursor))


def parse_verify_dynamic(cursor: Cursor) -> VerifyDynamicTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = VERIFY_DYNAMIC_GRAMMAR
    cursor.expect("VERIFY")
    return VerifyDynamicTable(*_named(cursor))


def parse_explain_refresh(cursor: Cursor) -> ExplainRefresh:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE for an option of Spark's EXPLAIN."""
    cursor.grammar = EXPLAIN_REFRESH_GRAMMAR
    cursor.expect("EXPLAIN")
    if not cursor.at("REFRESH"):
        raise cursor.refused(f"EXPLAIN {cursor.key()} REFRESH", "EXPLAIN REFRESH has one form", "write EXPLAIN REFRESH")
    cursor.advance()
    return ExplainRefresh(*_named(cursor))


def parse_show_dynamic(cursor: Cursor) -> ShowDynamicTables:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE."""
    cursor.grammar = SHOW_DYNAMIC_GRAMMAR
    cursor.expect("SHOW")
    is_view = take_list(cursor)
    words = " ".join(LISTS[is_view])
    show = read_listing(cursor, f"SHOW {words}", words.lower())
    return ShowDynamicTables(is_view, show.schema, show.like, show.where, show.limit)


def parse_show_history(cursor: Cursor) -> ShowRefreshHistory:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = SHOW_HISTORY_GRAMMAR
    cursor.expect("SHOW")
    is_view = take_type(cursor)
    cursor.expect("REFRESH", "HISTORY", hint="write REFRESH HISTORY, and FOR name for one of them")
    name: NameParts | None = None
    name_span: Span | None = None
    where: str | None = None
    limit: int | None = None
    seen: set[str] = set()
    while not cursor.at_end() and not cursor.at(";"):
        key = "FOR" if cursor.at("OF") else cursor.key()
        if key in seen:
            raise cursor.error(f"{cursor.key()} is given twice")
        seen.add(key)
        if key == "FOR":
            cursor.advance()
            name, name_span = cursor.name(name_of(is_view))
        elif key == "WHERE":
            where = read_where(cursor)
        elif key == "LIMIT":
            limit = read_limit(cursor)
        else:
            hint = f"write FOR {cursor.token.text}" if cursor.at_name() else ""
            raise cursor.expected_one_of(("FOR", "WHERE", "LIMIT"), hint)
    return ShowRefreshHistory(is_view, name, where, limit, name_span)


def parse_describe_dynamic(cursor: Cursor) -> DescribeDynamicTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = DESCRIBE_DYNAMIC_GRAMMAR
    cursor.advance()
    return DescribeDynamicTable(*_named(cursor))


def parse_show_create_dynamic(cursor: Cursor) -> ShowCreateDynamicTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = SHOW_CREATE_DYNAMIC_GRAMMAR
    cursor.expect("SHOW", "CREATE")
    return ShowCreateDynamicTable(*_named(cursor))


def _named(cursor: Cursor) -> tuple[NameParts, bool, Span]:
    """`{DYNAMIC TABLE | MATERIALIZED VIEW} name`: the name, whether it is a materialized view's, and its place."""
    is_view = take_type(cursor)
    name, name_span = cursor.name(name_of(is_view))
    return name, is_view, name_span
