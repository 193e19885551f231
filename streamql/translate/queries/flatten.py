"""FLATTEN of Snowflake and Databend as variant_explode and variant_explode_outer, which need a LATERAL and a VARIANT."""

from __future__ import annotations

from sqlglot import exp

from streamql.translate.model import NotTranslatedError

_VARIANTS = (exp.ParseJSON, exp.JSONExtract, exp.Cast, exp.Anonymous, exp.GetExtract)
"""What gives a VARIANT, or what the translation cannot know to be an ARRAY of Spark's."""
_COLUMNS = ("index", "key", "value")
_PROBLEM = "FLATTEN with PATH, RECURSIVE or MODE: Spark has only FLATTEN of one value, with OUTER or without"
_HINT = "use variant_explode or variant_explode_outer"


def adapt_flatten(tree: exp.Expr) -> None:
    """Changes the statement in place. Raises NotTranslatedError for arguments that Spark does not have."""
    for rows in list(tree.find_all(exp.TableFromRows, exp.Lateral)):
        if not isinstance(rows.this, exp.Explode) or rows.args.get("view"):
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


def _arguments(explode: exp.Explode) -> tuple[exp.Expr, bool]:
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
