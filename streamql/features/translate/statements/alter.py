"""ALTER TABLE and ALTER VIEW: only what Spark and Delta Lake have comes out; every other action is refused with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from streamql.dialect import quote_string
from streamql.dialect.text.cursor import Cursor
from streamql.errors import StreamqlError
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, Translated
from streamql.features.translate.ordinary.transpile import to_spark
from streamql.features.translate.statements.alter_columns import (
    add_columns,
    alter_columns,
    changed_column,
    items_of,
    refuse,
)
from streamql.features.translate.statements.restored import restored
from streamql.features.translate.statements.table_settings import read_settings
from streamql.features.translate.text.lenient import is_streamql
from streamql.features.translate.text.names import sql_name
from streamql.features.translate.text.properties import tracking
from streamql.features.translate.wording import CLUSTERED, MAPPING, NO_KEYS
from streamql.names import quote_if_needed

_IF_EXISTS = "IF EXISTS was left out: Spark's ALTER has none, and fails if there is no such {}"
_NOT_COLUMNS = ("ACCESS", "OPTIMIZATION", "METRIC", "POLICY", "LIFECYCLE", "(")
"""The second words of what ALTER TABLE adds besides columns: ROW ACCESS POLICY, SEARCH OPTIMIZATION, PARTITION (…), …"""
_KEY_WORDS = frozenset(("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN"))
_VIEW_TRACKING = "ALTER TABLE … SET CHANGE_TRACKING = TRUE for each table that the view reads"


@dataclass
class _Alter:
    """One ALTER: the object as the statement spells it, and what the statement becomes."""

    name: tuple[str, ...]
    cursor: Cursor
    context: Context
    statements: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sql(self) -> str:
        """Returns the name as a statement spells it."""
        return sql_name(self.name)

    def becomes(self, action: str) -> None:
        """Adds ALTER TABLE with an action."""
        self.statements.append(f"ALTER TABLE {self.sql} {action}")


Action = Callable[[_Alter], None]


def alter(text: str, context: Context) -> Translated | None:
    """Returns the translation of ALTER TABLE or ALTER VIEW; None: it is another statement, or one of streamql's own.

    Raises NotTranslatedError, and StreamqlError for a statement that ends too early.
    """
    cursor = Cursor(text)
    is_view = cursor.take("ALTER", "VIEW")
    if not is_view and (not cursor.take("ALTER", "TABLE") or cursor.at("STREAM") or is_streamql(text)):
        return None
    what = "view" if is_view else "table"
    notes = [_IF_EXISTS.format(what)] if cursor.take("IF", "EXISTS") else []
    name, _ = cursor.name(f"the name of a {what}")
    found = _Alter(name, cursor, context, notes=notes)
    start = cursor.token.start
    for words, action in _OF_VIEWS if is_view else _OF_TABLES:
        if cursor.take(*words):
            action(found)
            cursor.expect_end()
            return Translated(tuple(found.statements), tuple(found.notes))
    raise refuse(f"Spark and Delta Lake have no ALTER {what.upper()} … {_words(text[start:])}")


def _words(text: str) -> str:
    """Returns the first words of an action, for a reason."""
    return " ".join(text.split()[:3])


# --- actions on tables


def _set(alter: _Alter) -> None:
    settings = read_settings(alter.cursor)
    alter.statements += settings.statements(alter.name)
    alter.notes += settings.notes
    if settings.change_tracking is not None:
        alter.context.track([alter.name], settings.change_tracking)


def _unset(alter: _Alter) -> None:
    if alter.cursor.take("COMMENT"):
        alter.statements.append(f"COMMENT ON TABLE {alter.sql} IS NULL")
    elif alter.cursor.take("CHANGE_TRACKING"):
        raise refuse(
            "UNSET CHANGE_TRACKING: streamql sets it to a value", f"ALTER TABLE {alter.sql} SET CHANGE_TRACKING = FALSE"
        )
    else:
        raise refuse(f"UNSET {alter.cursor.found()}: Delta Lake has no such setting")


def _comment(alter: _Alter) -> None:
    alter.cursor.take("=")
    alter.statements.append(f"COMMENT ON TABLE {alter.sql} IS {quote_string(alter.cursor.string('the comment'))}")


def _key(alter: _Alter) -> None:
    """ADD or DROP of a key behind a clause that was left out. Keeps a primary key with RELY, and refuses others."""
    cursor = alter.cursor
    action = cursor.text[cursor.tokens[cursor.index - 1].start :].rstrip().rstrip(";").rstrip()
    if not is_streamql(f"ALTER TABLE {alter.sql} {action}"):
        raise refuse(NO_KEYS)
    alter.becomes(action)
    while not cursor.at_end():
        cursor.advance()


def _add(alter: _Alter) -> None:
    cursor = alter.cursor
    if cursor.at_any(_KEY_WORDS):
        _key(alter)
        return
    has_word = cursor.take("COLUMN") or cursor.take("COLUMNS")
    if not has_word and cursor.key(1) in _NOT_COLUMNS and not cursor.at("("):
        raise refuse(f"ADD {cursor.key()} {cursor.key(1)}: Delta Lake has none")
    statements, notes = add_columns(alter.sql, cursor, alter.context)
    alter.statements += statements
    alter.notes += notes


def _drop(alter: _Alter) -> None:
    cursor = alter.cursor
    if cursor.take("CLUSTERING", "KEY") or cursor.take("CLUSTER", "KEY"):
        alter.becomes("CLUSTER BY NONE")
        return
    if cursor.at_any(_KEY_WORDS):
        _key(alter)
        return
    has_word = cursor.take("COLUMN") or cursor.take("COLUMNS")
    if (
        not has_word
        and not cursor.at("IF", "EXISTS")
        and (cursor.key(1).isalpha() or cursor.at("TAG") or cursor.at("ALL"))
    ):
        raise refuse(f"DROP {cursor.key()} {cursor.key(1)}: Delta Lake has none")
    exists = "IF EXISTS " if cursor.take("IF", "EXISTS") else ""
    columns = [sql_name(Cursor(item).name("the name of a column")[0]) for item in items_of(cursor)]
    alter.becomes(f"DROP COLUMNS {exists}({', '.join(columns)})")
    alter.notes.append(MAPPING.format(alter.sql))


def _rename_table(alter: _Alter) -> None:
    alter.becomes(f"RENAME TO {sql_name(alter.cursor.name('the new name')[0])}")


def _rename_column(alter: _Alter) -> None:
    alter.cursor.take("COLUMN")
    old, _ = alter.cursor.name("the name of a column")
    alter.cursor.expect("TO")
    new, _ = alter.cursor.single_name("the new name")
    alter.becomes(f"RENAME COLUMN {sql_name(old)} TO {quote_if_needed(new)}")
    alter.notes.append(MAPPING.format(alter.sql))


def _swap(_: _Alter) -> None:
    raise refuse("Delta Lake does not swap tables", "write RENAME TO for both, with a third name between")


def _cluster(alter: _Alter) -> None:
    items = items_of(alter.cursor)
    columns = [item for item in items if _is_name(item)]
    others = ", ".join(item for item in items if item not in columns)
    if not columns:
        raise refuse(f"CLUSTER BY {others}: Delta Lake clusters by columns", "CLUSTER BY a column")
    if others:
        alter.notes.append(CLUSTERED.format(others))
    alter.becomes(f"CLUSTER BY ({', '.join(columns)})")


def _is_name(text: str) -> bool:
    cursor = Cursor(text)
    try:
        cursor.name("a column")
    except StreamqlError:
        return False
    return cursor.at_end()


def _alter_columns(alter: _Alter) -> None:
    statements, notes = alter_columns(alter.sql, alter.cursor, alter.context)
    alter.statements += dict.fromkeys(statements)
    alter.notes += notes


def _change_column(alter: _Alter) -> None:
    changed = changed_column(alter.sql, alter.cursor, alter.context)
    if changed is None:
        _alter_columns(alter)
        return
    alter.statements += changed[0]
    alter.notes += changed[1]


def _flashback(alter: _Alter) -> None:
    cursor = alter.cursor
    cursor.expect("(")
    if not cursor.take("TIMESTAMP", "=>"):
        raise refuse("FLASHBACK TO a snapshot: versions have numbers here", "RESTORE TABLE t TO VERSION AS OF n")
    time = cursor.raw("a time", lambda: cursor.at(")"))
    cursor.expect(")")
    alter.statements.append(restored(alter.sql, time, alter.context, "FLASHBACK"))


def _recluster(alter: _Alter) -> None:
    alter.cursor.take("FINAL")
    alter.statements.append(f"OPTIMIZE {alter.sql}")


# --- actions on views


def _track_view(alter: _Alter) -> None:
    context, view = alter.context, alter.context.view_of(alter.name)
    tables = context.tables_of(view) if view is not None else []
    if not alter.cursor.boolean("CHANGE_TRACKING") or not tables:
        problem = "change tracking belongs to tables here, and the script does not say which the view reads"
        raise NotTranslatedError(problem, _VIEW_TRACKING)
    context.track(tables)
    alter.statements += [tracking(table) for table in tables]
    alter.notes.append(f"change tracking of the view {alter.sql} became that of the tables that it reads")


def _rename_view(alter: _Alter) -> None:
    alter.statements.append(f"ALTER VIEW {alter.sql} RENAME TO {sql_name(alter.cursor.name('the new name')[0])}")


def _comment_view(alter: _Alter) -> None:
    alter.cursor.take("=")
    comment = quote_string(alter.cursor.string("the comment"))
    alter.statements.append(f"ALTER VIEW {alter.sql} SET TBLPROPERTIES ('comment' = {comment})")


def _uncomment_view(alter: _Alter) -> None:
    alter.statements.append(f"ALTER VIEW {alter.sql} UNSET TBLPROPERTIES IF EXISTS ('comment')")


def _query_of_view(alter: _Alter) -> None:
    query = to_spark(alter.cursor.raw("a query", alter.cursor.at_end), alter.context)
    alter.statements.append(f"ALTER VIEW {alter.sql} AS {query.statements[0]}")
    alter.notes += query.notes


_OF_TABLES: tuple[tuple[tuple[str, ...], Action], ...] = (
    (("SET",), _set),
    (("UNSET",), _unset),
    (("COMMENT",), _comment),
    (("ADD",), _add),
    (("DROP",), _drop),
    (("RENAME", "TO"), _rename_table),
    (("RENAME",), _rename_column),
    (("SWAP", "WITH"), _swap),
    (("CLUSTER", "BY"), _cluster),
    (("ALTER",), _alter_columns),
    (("MODIFY",), _alter_columns),
    (("CHANGE",), _change_column),
    (("FLASHBACK", "TO"), _flashback),
    (("RECLUSTER",), _recluster),
)
_OF_VIEWS: tuple[tuple[tuple[str, ...], Action], ...] = (
    (("SET", "CHANGE_TRACKING", "="), _track_view),
    (("RENAME", "TO"), _rename_view),
    (("SET", "COMMENT"), _comment_view),
    (("UNSET", "COMMENT"), _uncomment_view),
    (("AS",), _query_of_view),
)
