"""Statements about streams, tables' change tracking and transactions: which texts are such statements, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.create import parse_create, read_identity
from streamql.dialect.grammar import Grammar, stream_action
from streamql.dialect.listing import read_listing
from streamql.dialect.phrases import PHRASES
from streamql.dialect.points import POSITIONS_EXAMPLE, positions_point, version_number
from streamql.dialect.properties import is_set_table_properties, parse_set_table_properties
from streamql.dialect.statements import (
    AlterStream,
    DescribeStream,
    DropStream,
    PointInTime,
    Release,
    SetIdentity,
    SetOffset,
    ShowCreateStream,
    ShowStreams,
    Statement,
    StreamAction,
)
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import span
from streamql.dialect.transactions import recognize_transaction

DROP_GRAMMAR = "DROP [TABLE] STREAM [IF EXISTS] name"
ALTER_GRAMMAR = (
    "ALTER [TABLE] STREAM [IF EXISTS] name {SET COMMENT = '…' | UNSET COMMENT | RENAME TO name | "
    "SET OFFSET {VERSION n | TIMESTAMP time | '{\"partition\": offset, …}' | TO LATEST} | SET IDENTITY = {ROW_ID | KEY} | RELEASE}"
)
SHOW_GRAMMAR = "SHOW [TABLE] STREAMS [{IN | FROM} schema] [LIKE 'pattern' | WHERE condition] [LIMIT n]"
DESCRIBE_GRAMMAR = "DESCRIBE [TABLE] STREAM name"
SHOW_CREATE_GRAMMAR = "SHOW CREATE [TABLE] STREAM name"

_Parse = Callable[[Cursor], Statement]

# What Spark's grammar and Delta's (SHALLOW CLONE) let follow `CREATE TABLE stream`. After the second group they can never
# have ON, so a stream may bear such a name: CREATE TABLE STREAM comment ON TABLE t.
# fmt: off
_AFTER_CREATED_TABLE = frozenset((
    "USING", "AS", "SELECT", "LIKE", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE",
))
_AFTER_CREATED_TABLE_NEVER_ON = frozenset((
    "PARTITIONED", "OPTIONS", "CLUSTER", "CLUSTERED", "COMMENT", "LOCATION", "STORED", "TBLPROPERTIES", "ROW",
    "DEFAULT", "SKEWED", "SHALLOW", "DEEP", "CLONE",
))
_AFTER_ALTERED_TABLE = frozenset((
    "ADD", "RENAME", "DROP", "SET", "UNSET", "ALTER", "CHANGE", "REPLACE", "RECOVER", "CLUSTER", "CLUSTERED", "DEFAULT",
    "PARTITION", "EXCHANGE", "ARCHIVE", "UNARCHIVE", "TOUCH", "COMPACT", "CONCATENATE", "NOT", "SKEWED",
))
# fmt: on
AFTER_TABLE_NAME = _AFTER_CREATED_TABLE | _AFTER_CREATED_TABLE_NEVER_ON | _AFTER_ALTERED_TABLE | {"PURGE"}
"""Words that Spark's grammar lets follow the name of a table in CREATE, DROP and ALTER."""


# --- is it ours? Each function moves the cursor as it likes.


def _recognize_create(cursor: Cursor) -> _Parse | None:
    cursor.take("CREATE")
    cursor.take("OR", "REPLACE")
    if cursor.at("STREAM"):
        return parse_create
    if not cursor.take("TABLE", "STREAM") or not cursor.at_name():
        return None
    key, following = cursor.key(), cursor.key(1)
    if key in _AFTER_CREATED_TABLE:
        return parse_create if following == "." else None
    if key in _AFTER_CREATED_TABLE_NEVER_ON:
        return parse_create if following in (".", "ON") else None
    return parse_create


def _recognize_drop(cursor: Cursor) -> _Parse | None:
    cursor.take("DROP")
    if cursor.at("STREAM"):
        return _parse_drop
    if not cursor.take("TABLE", "STREAM") or not cursor.at_name():
        return None
    is_purge = cursor.take("PURGE") and cursor.at_end()
    return None if is_purge else _parse_drop


def _recognize_alter(cursor: Cursor) -> _Parse | None:
    cursor.take("ALTER")
    if cursor.at("STREAM"):
        return _parse_alter
    if cursor.at("TABLE", "STREAM") and cursor.key(2) != ".":
        cursor.take("TABLE", "STREAM")
        if cursor.at_name() and (not cursor.at_any(_AFTER_ALTERED_TABLE) or cursor.key(1) == "."):
            return _parse_alter
        cursor.index -= 2
    return parse_set_table_properties if is_set_table_properties(cursor) else None


def _recognize_show(cursor: Cursor) -> _Parse | None:
    cursor.take("SHOW")
    if cursor.take("CREATE"):
        if cursor.at("STREAM"):
            return _parse_show_create
        if not cursor.take("TABLE", "STREAM") or not cursor.at_name():
            return None
        return None if cursor.at("AS", "SERDE") else _parse_show_create
    if cursor.at_any(("FULL", "TERSE")):
        cursor.advance()
    cursor.take("TABLE")
    return _parse_show if cursor.at("STREAMS") else None


def _recognize_describe(cursor: Cursor) -> _Parse | None:
    cursor.advance()
    cursor.take("TABLE")
    if not cursor.take("STREAM") or not cursor.at_name():
        return None
    is_sparks = cursor.at("PARTITION", "(") or cursor.at("AS", "JSON")
    return None if is_sparks else _parse_describe


_RECOGNIZERS: dict[str, Callable[[Cursor], _Parse | None]] = {
    "CREATE": _recognize_create,
    "DROP": _recognize_drop,
    "ALTER": _recognize_alter,
    "SHOW": _recognize_show,
    "DESC": _recognize_describe,
    "DESCRIBE": _recognize_describe,
    "BEGIN": recognize_transaction,
    "START": recognize_transaction,
    "COMMIT": recognize_transaction,
    "ROLLBACK": recognize_transaction,
}


def _recognize(cursor: Cursor) -> _Parse | None:
    return _RECOGNIZERS[cursor.key()](cursor)


GRAMMAR = Grammar(frozenset(_RECOGNIZERS), _recognize, PHRASES, sources=(("TABLE",), ("VIEW",)))


# --- what does it say? Each function starts at the first token.


def _parse_drop(cursor: Cursor) -> DropStream:
    cursor.grammar = DROP_GRAMMAR
    cursor.expect("DROP")
    cursor.take("TABLE")
    cursor.expect("STREAM")
    if_exists = cursor.take("IF", "EXISTS")
    name, name_span = cursor.name("the name of the stream")
    return DropStream(name, if_exists, name_span)


def _parse_alter(cursor: Cursor) -> AlterStream:
    cursor.grammar = ALTER_GRAMMAR
    cursor.expect("ALTER")
    cursor.take("TABLE")
    cursor.expect("STREAM")
    if_exists = cursor.take("IF", "EXISTS")
    name, name_span = cursor.name("the name of the stream")
    return AlterStream(name, _parse_action(cursor), if_exists, name_span)


def _parse_action(cursor: Cursor) -> SetComment | RenameTo | SetOffset | SetIdentity | Release | StreamAction:
    if (parse := stream_action(cursor.key())) is not None:
        return parse(cursor)
    if cursor.take("RELEASE"):
        return Release()
    if cursor.take("UNSET"):
        if not cursor.take("COMMENT"):
            raise _refused_setting(cursor, "UNSET")
        return SetComment(None)
    if cursor.take("RENAME"):
        cursor.expect("TO", hint="write RENAME TO name")
        return RenameTo(cursor.name("the new name")[0])
    if not cursor.take("SET"):
        raise cursor.expected("SET, UNSET, RENAME TO or RELEASE")
    if cursor.take("COMMENT"):
        cursor.take("=")
        return SetComment(cursor.string("the comment"))
    if cursor.take("OFFSET"):
        return SetOffset(_parse_offset(cursor))
    if cursor.take("IDENTITY"):
        cursor.take("=")
        return SetIdentity(read_identity(cursor))
    raise _refused_setting(cursor, "SET")


def _refused_setting(cursor: Cursor, verb: str) -> Exception:
    settings = (
        "TAG",
        "APPEND_ONLY",
        "INSERT_ONLY",
        "SHOW_INITIAL_ROWS",
        "TABLE_STREAM_MODE",
        "PROPERTIES",
        "TBLPROPERTIES",
    )
    if cursor.key() in settings:
        why = "only a stream's comment, name, offset and identity can be altered"
        return cursor.refused(f"{verb} {cursor.key()}", why, "CREATE OR REPLACE STREAM makes the stream anew")
    return cursor.expected("COMMENT, OFFSET or IDENTITY" if verb == "SET" else "COMMENT")


def _parse_offset(cursor: Cursor) -> PointInTime | None:
    start = cursor.token
    is_to = cursor.take("TO")
    if cursor.take("LATEST"):
        return None
    if cursor.take("VERSION"):
        point = PointInTime("VERSION", version=version_number(cursor))
    elif cursor.take("TIMESTAMP"):
        point = PointInTime("TIMESTAMP", expression=cursor.raw("a timestamp", cursor.at_end))
    elif cursor.at_string() and not is_to:
        point = positions_point(
            cursor, f"write SET OFFSET {POSITIONS_EXAMPLE}, SET OFFSET VERSION n or SET OFFSET TO LATEST"
        )
    else:
        hint = f"write SET OFFSET VERSION n, TIMESTAMP '…', {POSITIONS_EXAMPLE} or TO LATEST"
        raise cursor.expected("LATEST" if is_to else "VERSION, TIMESTAMP or TO LATEST", hint)
    return replace(point, span=span(cursor.text, start.start, cursor.tokens[cursor.index - 1].end))


def _parse_show(cursor: Cursor) -> ShowStreams:
    cursor.grammar = SHOW_GRAMMAR
    cursor.expect("SHOW")
    terse = cursor.take("TERSE")
    if not terse:
        cursor.take("FULL")
    cursor.take("TABLE")
    cursor.expect("STREAMS")
    show = read_listing(cursor, "SHOW STREAMS", "streams")
    return ShowStreams(show.schema, show.like, show.where, show.limit, terse)


def _parse_describe(cursor: Cursor) -> DescribeStream:
    cursor.grammar = DESCRIBE_GRAMMAR
    cursor.advance()
    cursor.take("TABLE")
    cursor.expect("STREAM")
    return DescribeStream(*cursor.name("the name of the stream"))


def _parse_show_create(cursor: Cursor) -> ShowCreateStream:
    cursor.grammar = SHOW_CREATE_GRAMMAR
    cursor.expect("SHOW", "CREATE")
    cursor.take("TABLE")
    cursor.expect("STREAM")
    return ShowCreateStream(*cursor.name("the name of the stream"))
