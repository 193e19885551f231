"""PRIMARY KEY (columns) RELY, in any order of the words behind it that other systems have."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.misspelt import suggestion

COLUMNS_MAX = 32
_ENFORCEMENT = (
    ("NOT", "ENFORCED"),
    ("ENABLE",),
    ("NOVALIDATE",),
    ("DISABLE",),
    ("NOT", "DEFERRABLE"),
    ("INITIALLY", "DEFERRED"),
)
"""What other systems let stand beside RELY. Nothing enforces a key here, so these words change nothing."""


def read_columns(cursor: Cursor) -> tuple[str, ...]:
    """Returns the columns in the parentheses that follow PRIMARY KEY, as written and unquoted. Raises SYNTAX_ERROR."""
    cursor.expect("(", hint="write PRIMARY KEY (column, …) RELY")
    columns = list[str]()
    while True:
        first = cursor.token
        name = cursor.single_name("a column of the key")[0]
        if name.lower() in (c.lower() for c in columns):
            raise cursor.error(f"column {name} is twice in the key", hint="name each column once", token=first)
        columns.append(name)
        if cursor.take(")"):
            break
        cursor.expect(",", hint="columns are separated by commas, the list ends with )")
    if len(columns) > COLUMNS_MAX:
        raise cursor.error(f"a key has at most {COLUMNS_MAX} columns, this has {len(columns)}")
    return tuple(columns)


def take_rely(cursor: Cursor) -> bool:
    """Steps over RELY and the words about enforcement beside it. Returns whether RELY was among them."""
    found = False
    while True:
        if not found and cursor.take("RELY"):
            found = True
        elif not any(cursor.take(*words) for words in _ENFORCEMENT):
            return found


def expect_rely(cursor: Cursor) -> None:
    """Steps over RELY. Raises UNSUPPORTED_CLAUSE if it is missing."""
    token = cursor.token
    if take_rely(cursor):
        return
    if cursor.at_any(("NORELY", "ENFORCED")):
        raise cursor.refused(
            cursor.key(), "Delta Lake checks no key, and one without RELY has no effect", "write PRIMARY KEY (…) RELY"
        )
    raise cursor.error(
        "a PRIMARY KEY without RELY has no effect: Delta Lake checks no key, and RELY says that streams may trust it",
        hint=suggestion(cursor.key(), ("RELY",)) or "write PRIMARY KEY (…) RELY",
        token=token,
        code="UNSUPPORTED_CLAUSE",
    )
