"""Which texts are statements about primary keys, and what they say."""

from __future__ import annotations

from streamql.dialect.grammar import Follows, Grammar, Parse, Phrase
from streamql.dialect.properties import skip_name
from streamql.dialect.text.cursor import Cursor
from streamql.features.keys.language.constraint import expect_rely, read_columns
from streamql.features.keys.language.created import misspelt_rely
from streamql.features.keys.language.statements import AddPrimaryKey, DropPrimaryKey, ShowPrimaryKeys

ADD_GRAMMAR = "ALTER TABLE name ADD [CONSTRAINT name] PRIMARY KEY (column, …) RELY"
DROP_GRAMMAR = "ALTER TABLE name DROP PRIMARY KEY [IF EXISTS]"
SHOW_GRAMMAR = "SHOW PRIMARY KEYS {IN | FROM} [TABLE] name"


def _recognize(cursor: Cursor) -> Parse | None:
    """Returns the function that parses the statement; None: it is another one. Starts at the first token, and moves the cursor."""
    if cursor.take("SHOW"):
        return _parse_show if cursor.at("PRIMARY", "KEYS") or cursor.at("PRIMARY", "KEY") else None
    if not cursor.take("ALTER", "TABLE") or not skip_name(cursor):
        return None
    if cursor.at("DROP", "PRIMARY", "KEY") or cursor.at("DROP", "PRIMARY", "KEYS"):
        return _parse_drop
    if not cursor.take("ADD"):
        return None
    if cursor.take("CONSTRAINT") and not skip_name(cursor):
        return None
    return _parse_add if cursor.at("PRIMARY", "KEY") else None


def _parse_add(cursor: Cursor) -> AddPrimaryKey:
    cursor.grammar = ADD_GRAMMAR
    cursor.expect("ALTER", "TABLE")
    table, span = cursor.name("the name of the table")
    cursor.expect("ADD")
    if cursor.take("CONSTRAINT"):
        cursor.single_name("the name of the constraint")
    cursor.expect("PRIMARY", "KEY")
    columns = read_columns(cursor)
    expect_rely(cursor)
    return AddPrimaryKey(table, columns, span)


def _parse_drop(cursor: Cursor) -> DropPrimaryKey:
    cursor.grammar = DROP_GRAMMAR
    cursor.expect("ALTER", "TABLE")
    table, span = cursor.name("the name of the table")
    cursor.expect("DROP", "PRIMARY")
    cursor.expect("KEY")
    if_exists = cursor.take("IF", "EXISTS")
    if not cursor.take("RESTRICT"):
        cursor.take("CASCADE")
    return DropPrimaryKey(table, if_exists, span)


def _parse_show(cursor: Cursor) -> ShowPrimaryKeys:
    cursor.grammar = SHOW_GRAMMAR
    cursor.expect("SHOW", "PRIMARY")
    cursor.expect("KEYS")
    if not cursor.take("IN"):
        cursor.expect("FROM", hint="write SHOW PRIMARY KEYS IN and the name of a table")
    cursor.take("TABLE")
    return ShowPrimaryKeys(*cursor.name("the name of the table"))


GRAMMAR = Grammar(
    frozenset(("ALTER", "SHOW")),
    _recognize,
    (Phrase(("SHOW", "PRIMARY", "KEYS"), follows=Follows("table", ("IN",)), is_compared=False),),
    explains=(misspelt_rely,),
)
