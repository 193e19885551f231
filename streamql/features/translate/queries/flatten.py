"""FLATTEN of Snowflake and Databend as variant_explode and variant_explode_outer, which need a LATERAL and a VARIANT."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from streamql.features.translate.model import NotTranslatedError, System

_VARIANTS = (exp.ParseJSON, exp.JSONExtract, exp.Cast, exp.Anonymous, exp.GetExtract)
"""What gives a VARIANT, or what the translation cannot know to be an ARRAY of Spark's."""
_COLUMNS = ("index", "key", "value")
_OTHERS = ("seq", "path", "this")
_NO_COLUMNS = "variant_explode has the columns index, key and value of FLATTEN, and no {}"
_PROBLEM = "FLATTEN with PATH, RECURSIVE or MODE: Spark has only FLATTEN of one value, with OUTER or without"
_HINT = "use variant_explode or variant_explode_outer"


def adapt_flatten(tree: exp.Expr, system: System) -> list[str]:
    """Changes the statement in place; the notes. Raises NotTranslatedError for arguments that Spark does not have."""
    aliases: set[str] = set()
    for rows in list(tree.find_all(exp.TableFromRows, exp.Lateral)):
        # ClickZetta's EXPLODE is Spark's.
        is_flatten = isinstance(rows.this, exp.Flatten if system is System.CLICKZETTA else exp.Explode)
        if not is_flatten or rows.args.get("view"):
            continue
        value, is_outer = _arguments(rows.this)
        if isinstance(value, exp.Func) and not isinstance(value, _VARIANTS):
            value = exp.cast(value, exp.DType.VARIANT)  # an ARRAY of Spark's
        name = "VARIANT_EXPLODE_OUTER" if is_outer else "VARIANT_EXPLODE"
        call = exp.Anonymous(this=name, expressions=[value.copy()])
        alias = rows.args.get("alias")
        table = alias.this.copy() if alias is not None and alias.this is not None else exp.to_identifier("_flattened")
        columns = [exp.to_identifier(column) for column in _COLUMNS]
        rows.replace(exp.Lateral(this=call, alias=exp.TableAlias(this=table, columns=columns)))
        aliases.add(table.name.lower())
    return list(_notes(tree, aliases)) if aliases else []


def _notes(tree: exp.Expr, aliases: set[str]) -> Iterator[str]:
    """Yields a note on the columns of FLATTEN that Spark does not have, which the statement names or shows by a *."""
    columns = list(tree.find_all(exp.Column))
    named = {
        column.name.lower()
        for column in columns
        if column.name.lower() in _OTHERS and column.table.lower() in ("", *aliases)
    }
    if named:
        yield _NO_COLUMNS.format(" or ".join(name for name in _OTHERS if name in named))
    for select in tree.find_all(exp.Select):
        laterals = [join.this for join in select.args.get("joins") or []] + (select.args.get("laterals") or [])
        origin = select.args.get("from_")
        read = [*laterals, *([origin.this] if origin is not None else [])]
        is_flattened = any(isinstance(r, exp.Lateral) and r.alias.lower() in aliases for r in read)
        stars = [e.text("table").lower() for e in select.expressions if e.is_star and not isinstance(e, exp.Func)]
        if is_flattened and any(table in ("", *aliases) for table in stars):
            yield "* shows index, key and value of FLATTEN, and no seq, path or this"


def _arguments(explode: exp.Expr) -> tuple[exp.Expr, bool]:
    """Returns the value that FLATTEN takes apart, and whether one without elements gives a row."""
    value: exp.Expr | None = None
    is_outer = False
    for argument in (explode.this, *explode.expressions):
        name = argument.this.name.upper() if isinstance(argument, exp.Kwarg) else "INPUT"
        given = argument.expression if isinstance(argument, exp.Kwarg) else argument
        if name == "INPUT" and value is None:
            value = given
        elif name == "OUTER" and isinstance(given, exp.Boolean):
            is_outer = bool(given.this)
        else:
            raise NotTranslatedError(_PROBLEM, _HINT)
    if value is None:
        raise NotTranslatedError(_PROBLEM, _HINT)
    return value, is_outer
