"""ALTER DYNAMIC TABLE and ALTER MATERIALIZED VIEW."""

from __future__ import annotations

from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.text.cursor import Cursor
from streamql.features.dynamic.language.create import read_refresh_mode
from streamql.features.dynamic.language.refused import ALTERED, SETTINGS, refuse
from streamql.features.dynamic.language.schedule import read_refresh, read_target_lag
from streamql.features.dynamic.language.statements import (
    AlterDynamicTable,
    RefreshDynamicTable,
    Resume,
    SetRefreshMode,
    SetSchedule,
    Suspend,
)
from streamql.features.dynamic.language.words import name_of, take_type, type_words

ALTER_DYNAMIC_GRAMMAR = (
    "ALTER {DYNAMIC TABLE | MATERIALIZED VIEW} [IF EXISTS] name {SUSPEND | RESUME | REFRESH | "
    "SET TARGET_LAG = {'n unit' | DOWNSTREAM} | SET REFRESH [START WITH time] INTERVAL n {SECOND | MINUTE | HOUR | DAY} | "
    "SET REFRESH_MODE = {AUTO | FULL | INCREMENTAL} | SET COMMENT = '…' | UNSET COMMENT | UNSET SCHEDULE | RENAME TO name}"
)

_ACTIONS = ("SUSPEND", "RESUME", "REFRESH", "SET", "UNSET", "RENAME")
_SET = ("TARGET_LAG", "REFRESH", "REFRESH_MODE", "COMMENT")
_UNSET = ("COMMENT", "TARGET_LAG", "SCHEDULE")

_Action = Suspend | Resume | SetSchedule | SetRefreshMode | SetComment | RenameTo


def parse_alter_dynamic(cursor: Cursor) -> AlterDynamicTable | RefreshDynamicTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY."""
    cursor.grammar = ALTER_DYNAMIC_GRAMMAR
    cursor.expect("ALTER")
    is_view = take_type(cursor)
    if_exists = cursor.take("IF", "EXISTS")
    name, name_span = cursor.name(name_of(is_view))
    refuse(cursor, ALTERED)
    if cursor.at("REFRESH"):
        if if_exists:
            hint = f"write REFRESH {type_words(is_view)} and the name"
            raise cursor.refused("REFRESH with IF EXISTS", "a refresh needs the table", hint)
        cursor.advance()
        return RefreshDynamicTable(name, is_view, name_span)
    return AlterDynamicTable(name, is_view, _action(cursor), if_exists, name_span)


def _action(cursor: Cursor) -> _Action:
    if cursor.take("SUSPEND"):
        return Suspend()
    if cursor.take("RESUME"):
        return Resume()
    if cursor.take("RENAME"):
        cursor.expect("TO", hint="write RENAME TO name")
        return RenameTo(cursor.name("the new name")[0])
    if cursor.take("UNSET"):
        return _unset(cursor)
    if not cursor.take("SET"):
        raise cursor.expected_one_of(_ACTIONS)
    refuse(cursor, SETTINGS, "SET")
    action = _set(cursor)
    if not cursor.at_end() and not cursor.at(";"):
        refuse(cursor, SETTINGS, "SET")
        raise cursor.expected("the end of the statement", "a statement sets one thing: write ALTER … SET … for each")
    return action


def _set(cursor: Cursor) -> _Action:
    if cursor.take("TARGET_LAG"):
        return SetSchedule(read_target_lag(cursor))
    if cursor.take("REFRESH_MODE"):
        return SetRefreshMode(read_refresh_mode(cursor))
    if cursor.take("COMMENT"):
        cursor.take("=")
        return SetComment(cursor.string("the comment"))
    if not cursor.take("REFRESH"):
        raise cursor.expected_one_of(_SET)
    start = cursor.token
    schedule, has_cluster = read_refresh(cursor, ())
    if schedule is None or has_cluster:
        why, hint = "no cluster runs refreshes", "leave VCLUSTER out: write SET REFRESH INTERVAL 10 MINUTE"
        raise cursor.refused("SET REFRESH … VCLUSTER", why, hint, start)
    return SetSchedule(schedule)


def _unset(cursor: Cursor) -> _Action:
    refuse(cursor, SETTINGS, "UNSET")
    if not cursor.at_any(_UNSET):
        raise cursor.expected_one_of(_UNSET)
    return SetComment(None) if cursor.advance().key == "COMMENT" else SetSchedule(None)
