"""Columns in ALTER TABLE: ADD, ALTER, MODIFY and CHANGE, as Delta Lake has them."""

from __future__ import annotations

from sqlglot import exp

from streamql.dialect import quote_string
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import name_part
from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError
from streamql.features.translate.ordinary.expressions import columns_to_spark, expression_to_spark
from streamql.features.translate.text.names import sql_name
from streamql.features.translate.text.properties import COLUMN_DEFAULTS
from streamql.features.translate.wording import LEAVE_OUT, MAPPING
from streamql.names import quote_if_needed

_DEFAULTS = "SET TBLPROPERTIES ('{}' = '{}')".format(*COLUMN_DEFAULTS)
_FILLED = "the rows that the table has get the default of {} by UPDATE, which streams on the table show as changes"
_IF_NOT_EXISTS = "IF NOT EXISTS was left out: Spark's ADD COLUMNS has none, and fails if the column exists"
_NOT_NULL = "NOT NULL of {} was left out: Delta Lake adds only columns that may be NULL"
_WIDENED = "Delta Lake changes a type only to a wider one: ALTER TABLE {} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
_NOT_RENAMED = "CHANGE COLUMN became RENAME COLUMN and ALTER COLUMN: Spark's CHANGE COLUMN does not rename"
_NOT_TYPES = ("SET", "UNSET", "DROP", "ADD", "NOT", "COMMENT", "FIRST", "AFTER", "RENAME", "TYPE", "DEFAULT", "")


def refuse(reason: str, hint: str = LEAVE_OUT) -> NotTranslatedError:
    """Returns the refusal of an action."""
    return NotTranslatedError(reason, hint)


def items_of(cursor: Cursor) -> list[str]:
    """Returns the texts between the commas of the rest of the statement, or of the parentheses around it."""
    end = len(cursor.tokens) - 1
    if cursor.at("(") and cursor.closers.get(cursor.index) == end - 1:
        cursor.index, end = cursor.index + 1, end - 1
    items: list[str] = []
    start = cursor.index
    while cursor.index <= end:
        if cursor.index == end or cursor.at(","):
            if cursor.index == start:
                raise cursor.expected("the name of a column")
            items.append(cursor.text[cursor.tokens[start].start : cursor.tokens[cursor.index - 1].end])
            start = cursor.index + 1
        cursor.index = cursor.closers.get(cursor.index, cursor.index) + 1
    cursor.index = len(cursor.tokens) - 1
    return items


def add_columns(table: str, cursor: Cursor, context: Context) -> tuple[list[str], list[str]]:
    """Returns the statements that add columns, and notes. Raises NotTranslatedError."""
    columns: list[str] = []
    after: list[str] = []
    notes: list[str] = []
    for item in items_of(cursor):
        bare = _without_words(item)
        notes += [] if bare == _without_words(item, is_optional=False) else [_IF_NOT_EXISTS]
        definition, place = _without_place(bare)
        found, more = columns_to_spark(definition, context)
        if len(found) != 1 or not isinstance(found[0], exp.ColumnDef) or found[0].args.get("kind") is None:
            raise refuse(f"ADD {item}: Delta Lake adds columns with a name and a type")
        columns.append(_added(table, found[0], after, notes) + place)
        notes += more
    statements = [f"ALTER TABLE {table} ADD COLUMNS ({', '.join(columns)})"]
    if after:
        statements.append(f"ALTER TABLE {table} {_DEFAULTS}")
    return [*statements, *after], list(dict.fromkeys(notes))


def _added(table: str, column: exp.ColumnDef, after: list[str], notes: list[str]) -> str:
    """Returns the definition of a new column; `after` and `notes` get what Delta Lake does not take in it."""
    name = sql_of(column.this)
    comment = ""
    for constraint in column.args.get("constraints") or []:
        what = constraint.args.get("kind")
        if isinstance(what, exp.DefaultColumnConstraint):
            value = sql_of(what.this)
            after += [
                f"ALTER TABLE {table} ALTER COLUMN {name} SET DEFAULT {value}",
                f"UPDATE {table} SET {name} = {value}",
            ]
            notes.append(_FILLED.format(name))
        elif isinstance(what, exp.NotNullColumnConstraint):
            notes.append(_NOT_NULL.format(name))
        elif isinstance(what, exp.CommentColumnConstraint):
            comment = f" COMMENT {sql_of(what.this)}"
        else:
            words = sql_of(what) if what is not None else "a constraint"
            raise refuse(f"ADD COLUMN {name} with {words}: Delta Lake has it in CREATE TABLE only")
    return f"{name} {sql_of(column.args['kind'])}{comment}"


def _without_words(item: str, is_optional: bool = True) -> str:
    """Returns an item without ADD and COLUMN before it, which some systems repeat behind each comma; `is_optional`: and IF NOT EXISTS."""
    cursor = Cursor(item)
    cursor.take("ADD")
    if cursor.at("COLUMN") and len(cursor.tokens) > 3:
        cursor.take("COLUMN")
    if is_optional:
        cursor.take("IF", "NOT", "EXISTS")
    return item[cursor.token.start :]


def _without_place(item: str) -> tuple[str, str]:
    """Returns a definition without FIRST or AFTER behind it, and these words."""
    tokens = Cursor(item).tokens
    for size in (1, 2):
        if len(tokens) > size + 2 and tokens[-1 - size].key == ("FIRST", "AFTER")[size - 1]:
            start = tokens[-1 - size].start
            return item[:start], " " + item[start:]
    return item, ""


def alter_columns(table: str, cursor: Cursor, context: Context) -> tuple[list[str], list[str]]:
    """Returns the statements that change columns, and notes. Raises NotTranslatedError."""
    statements: list[str] = []
    notes: list[str] = []
    for item in items_of(cursor):
        inner = Cursor(item)
        _ = inner.take("ALTER") or inner.take("MODIFY")
        if len(inner.tokens) > inner.index + 2:
            inner.take("COLUMN")
        name, _where = inner.name("the name of a column")
        for action in _actions(sql_name(name), inner, context):
            statements.append(f"ALTER TABLE {table} {action}")
            if " TYPE " in action:
                notes.append(_WIDENED.format(table))
        inner.expect_end()
    return statements, list(dict.fromkeys(notes))


def changed_column(table: str, cursor: Cursor, context: Context) -> tuple[list[str], list[str]] | None:
    """Returns the statements and notes of Hive's CHANGE COLUMN old new type, which can rename; None: it is another form.

    Raises NotTranslatedError.
    """
    start = cursor.index
    cursor.take("COLUMN")
    old = sql_name(cursor.name("the name of a column")[0])
    is_named = name_part(cursor.token) is not None and (not cursor.key() or cursor.key() not in _NOT_TYPES)
    if not is_named or not cursor.key(1).isalnum() or cursor.key(1) in _NOT_TYPES:
        cursor.index = start
        return None
    new = quote_if_needed(cursor.single_name("the new name")[0])
    definition, place = _without_place(cursor.raw("a type", cursor.at_end))
    is_renamed = old.lower() != new.lower()
    actions = [f"RENAME COLUMN {old} TO {new}"] if is_renamed else []
    actions += _typed(new, definition, context)
    actions += [f"ALTER COLUMN {new}{place}"] if place else []
    notes = [_NOT_RENAMED, MAPPING.format(table)] if is_renamed else []
    return [f"ALTER TABLE {table} {action}" for action in actions], [*notes, _WIDENED.format(table)]


def _actions(column: str, cursor: Cursor, context: Context) -> list[str]:
    """Returns the actions on one column, of which the cursor stands behind the name."""
    where = f"ALTER COLUMN {column}"
    if cursor.take("SET", "DEFAULT"):
        value, _notes = expression_to_spark(cursor.raw("a value", cursor.at_end), context)
        return [_DEFAULTS, f"{where} SET DEFAULT {value}"]
    if cursor.take("DROP", "DEFAULT"):
        return [f"{where} DROP DEFAULT"]
    if cursor.take("DROP", "NOT", "NULL"):
        return [f"{where} DROP NOT NULL"]
    if cursor.take("COMMENT"):
        return [f"{where} COMMENT {quote_string(cursor.string('the comment'))}"]
    if cursor.take("UNSET", "COMMENT"):
        return [f"{where} COMMENT ''"]
    if cursor.take("FIRST"):
        return [f"{where} FIRST"]
    if cursor.take("AFTER"):
        return [f"{where} AFTER {quote_if_needed(cursor.single_name('the name of a column')[0])}"]
    if cursor.take("RENAME", "TO"):
        return [f"RENAME COLUMN {column} TO {quote_if_needed(cursor.single_name('the new name')[0])}"]
    is_type = cursor.take("SET", "DATA", "TYPE") or cursor.take("TYPE") or not cursor.at_any(_NOT_TYPES)
    if not is_type:
        found = " ".join(key for key in (cursor.key(), cursor.key(1), cursor.key(2)) if key)
        raise refuse(f"{found} of the column {column}: Delta Lake does not change this of a column")
    return _typed(column, cursor.raw("a type", cursor.at_end), context)


def _typed(column: str, text: str, context: Context) -> list[str]:
    """Returns the actions that give a column a type, and the default and comment behind it."""
    found, _ = columns_to_spark(f"{column} {text}", context)
    definition = found[0] if len(found) == 1 else None
    data_type = definition.args.get("kind") if definition is not None else None
    if definition is None or data_type is None:
        raise refuse(f"the type {text} of the column {column}")
    actions = [f"ALTER COLUMN {column} TYPE {sql_of(data_type)}"]
    for constraint in definition.args.get("constraints") or []:
        what = constraint.args.get("kind")
        if isinstance(what, exp.DefaultColumnConstraint):
            actions += [_DEFAULTS, f"ALTER COLUMN {column} SET DEFAULT {sql_of(what.this)}"]
        elif isinstance(what, exp.CommentColumnConstraint):
            actions.append(f"ALTER COLUMN {column} COMMENT {sql_of(what.this)}")
        else:
            words = sql_of(what) if what is not None else "a constraint"
            raise refuse(f"{words} of the column {column}: Delta Lake does not change this of a column")
    return actions
