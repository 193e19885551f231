"""Primary keys with RELY in CREATE TABLE. They are kept, because streams with IDENTITY = KEY recognize rows by them."""

from __future__ import annotations

from sqlglot import exp

_RELY = "RELY"


def taken_key(schema: exp.Schema) -> exp.PrimaryKey | None:
    """Takes a key with RELY out of a list of columns. Returns it as an element of the list; None: there is none."""
    items = schema.expressions
    keys = [key for item in items if (key := _of_column(item) or _of_table(item)) is not None]
    schema.set("expressions", [item for item in items if _of_table(item) is None])
    for column in items:
        if _of_column(column) is not None:
            column.set("constraints", [c for c in column.args["constraints"] if not _is_reliable(c.args.get("kind"))])
    return keys[0] if keys else None


def _of_column(item: exp.Expr) -> exp.PrimaryKey | None:
    constraints = (item.args.get("constraints") or []) if isinstance(item, exp.ColumnDef) else []
    return _key([item.this]) if any(_is_reliable(c.args.get("kind")) for c in constraints) else None


def _of_table(item: exp.Expr) -> exp.PrimaryKey | None:
    parts = item.expressions if isinstance(item, exp.Constraint) else [item]  # the name of a constraint is not kept
    key = next((part for part in parts if isinstance(part, exp.PrimaryKey)), None)
    if key is None or not _is_reliable(key):
        return None
    return _key([name for column in key.expressions if (name := column.find(exp.Identifier)) is not None])


def _key(columns: list[exp.Identifier]) -> exp.PrimaryKey:
    return exp.PrimaryKey(expressions=[column.copy() for column in columns], options=[_RELY])


def _is_reliable(key: exp.Expr | None) -> bool:
    """Returns whether it is a primary key with RELY."""
    if not isinstance(key, exp.PrimaryKey | exp.PrimaryKeyColumnConstraint):
        return False
    return any(str(option).upper() == _RELY for option in key.args.get("options") or [])
