"""Parses EXPECTATION name CHECK (condition) ON VIOLATION …, and Databricks' words for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamql.dialect.statements import StreamAction
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts

FAIL, DROP, QUARANTINE, WARN = ACTIONS = ("FAIL", "DROP", "QUARANTINE", "WARN")
"""What becomes of a statement that takes a row which violates an expectation, or of the row."""

PRECEDENCE = (FAIL, QUARANTINE, DROP, WARN)
"""What comes first if a row violates several expectations."""

CLAUSE_GRAMMAR = "EXPECTATION name CHECK (condition) [ON VIOLATION {FAIL | DROP | QUARANTINE [INTO table] | WARN}]"
ADD_GRAMMAR = f"ALTER STREAM name ADD {CLAUSE_GRAMMAR}"
DROP_GRAMMAR = "ALTER STREAM name DROP EXPECTATION [IF EXISTS] name"
EXPECTATIONS_MAX = 64
"""So many expectations a stream has at most: each is evaluated on each row."""


@dataclass(frozen=True)
class AddExpectation(StreamAction):
    """EXPECTATION name CHECK (condition) ON VIOLATION action. `into`: the quarantine table; None: none is named. `start`, `end`: where the
    clause stands in its statement."""

    name: str
    condition: str
    action: str
    into: NameParts | None = None
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@dataclass(frozen=True)
class DropExpectation(StreamAction):
    """DROP EXPECTATION [IF EXISTS] name."""

    name: str
    if_exists: bool = False


def parse_add(cursor: Cursor) -> AddExpectation:
    """Returns the action ADD EXPECTATION, from ADD on."""
    cursor.grammar = ADD_GRAMMAR
    cursor.expect("ADD")
    return parse_clause(cursor)


def parse_drop(cursor: Cursor) -> DropExpectation:
    """Returns the action DROP EXPECTATION, from DROP on."""
    cursor.grammar = DROP_GRAMMAR
    cursor.expect("DROP")
    _expect_word(cursor)
    if_exists = cursor.take("IF", "EXISTS")
    return DropExpectation(cursor.single_name("the name of the expectation")[0], if_exists)


def parse_clause(cursor: Cursor) -> AddExpectation:
    """Returns an expectation, from its first word on. Raises SYNTAX_ERROR."""
    start = cursor.token.start
    _expect_word(cursor)
    name = cursor.single_name("the name of the expectation")[0]
    if not cursor.take("CHECK"):
        cursor.expect("EXPECT", hint=f"write {CLAUSE_GRAMMAR}")
    cursor.expect("(", hint="write CHECK (condition)")
    condition = cursor.raw("a condition", lambda: cursor.at(")"))
    cursor.expect(")")
    action, into = WARN, None
    if cursor.take("ON"):
        cursor.expect("VIOLATION", hint=f"write {CLAUSE_GRAMMAR}")
        action = _action(cursor)
        if action == QUARANTINE and cursor.take("INTO"):
            cursor.take("TABLE")
            into = cursor.name("the name of the quarantine table")[0]
    return AddExpectation(name, condition, action, into, start, cursor.tokens[cursor.index - 1].end)


def _expect_word(cursor: Cursor) -> None:
    if not cursor.take("EXPECTATION"):
        cursor.expect("CONSTRAINT", hint=cursor.grammar if cursor.grammar in (ADD_GRAMMAR, DROP_GRAMMAR) else "")


def _action(cursor: Cursor) -> str:
    """Returns one of `ACTIONS`. Databricks writes FAIL UPDATE and DROP ROW."""
    if not cursor.at_any(ACTIONS):
        raise cursor.expected_one_of(ACTIONS, f"write {CLAUSE_GRAMMAR}")
    action = cursor.advance().key
    cursor.take("UPDATE" if action == FAIL else "ROW")
    return action
