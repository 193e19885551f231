"""Conversions by sqlglot's tree, as Spark has them: those that give NULL for what they cannot convert keep their TRY_."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.generators.databricks import DatabricksGenerator

from streamql.features.translate.dialects.formats import is_auto


def _is_safe(node: exp.Expr) -> bool:
    return bool(node.args.get("safe"))


def _cast(generator: DatabricksGenerator, node: exp.Expr, type_words: str) -> str:
    return f"{'TRY_CAST' if _is_safe(node) else 'CAST'}({generator.sql(node.this)} AS {type_words})"


def _parse_json(generator: DatabricksGenerator, node: exp.ParseJSON) -> str:
    return str(generator.func("TRY_PARSE_JSON" if _is_safe(node) else "PARSE_JSON", node.this))


def _to_date(generator: DatabricksGenerator, node: exp.TsOrDsToDate) -> str:
    if is_auto(node):
        return _cast(generator, node, "DATE")
    if not _is_safe(node):
        return str(DatabricksGenerator.TRANSFORMS[exp.TsOrDsToDate](generator, node))
    return str(generator.func("TRY_TO_DATE", node.this, generator.format_time(node)))


def _to_timestamp(generator: DatabricksGenerator, node: exp.StrToTime) -> str:
    if is_auto(node):
        return _cast(generator, node, "TIMESTAMP")
    name = "TRY_TO_TIMESTAMP" if _is_safe(node) else "TO_TIMESTAMP"
    return str(generator.func(name, node.this, generator.format_time(node)))


def _to_number(generator: DatabricksGenerator, node: exp.ToNumber) -> str:
    """TO_NUMBER without a format is a cast: Spark's needs a format."""
    precision, scale = node.args.get("precision"), node.args.get("scale")
    decimal = f"DECIMAL({generator.sql(precision) or 38}, {generator.sql(scale) or 0})"
    pattern = node.args.get("format")
    if pattern is None:
        return _cast(generator, node, decimal)
    name = "TRY_TO_NUMBER" if _is_safe(node) else "TO_NUMBER"
    return f"CAST({generator.func(name, node.this, pattern)} AS {decimal})"


def _to_boolean(generator: DatabricksGenerator, node: exp.ToBoolean) -> str:
    return _cast(generator, node, "BOOLEAN")


def _to_binary(generator: DatabricksGenerator, node: exp.ToBinary) -> str:
    return str(generator.func("TRY_TO_BINARY" if _is_safe(node) else "TO_BINARY", node.this, node.args.get("format")))


def _day_of_iso_week(generator: DatabricksGenerator, node: exp.DayOfWeekIso) -> str:
    return f"(WEEKDAY({generator.sql(node.this)}) + 1)"


def _sha2(generator: DatabricksGenerator, node: exp.SHA2) -> str:
    return str(generator.func("SHA2", node.this, node.args.get("length") or exp.Literal.number(256)))


def _overlay(generator: DatabricksGenerator, node: exp.Stuff) -> str:
    """INSERT (text, start, length, new), which Spark calls OVERLAY."""
    text, start, length, new = (generator.sql(node.args[name]) for name in ("this", "start", "length", "expression"))
    return f"OVERLAY({text} PLACING {new} FROM {start} FOR {length})"


def _collate(generator: DatabricksGenerator, node: exp.Collate) -> str:
    name = node.expression
    words = name.name if isinstance(name, exp.Literal) and name.name.isidentifier() else generator.sql(name)
    return f"{generator.sql(node.this)} COLLATE {words}"


CONVERSIONS: dict[type[exp.Expr], Callable[..., Any]] = {
    exp.ParseJSON: _parse_json,
    exp.TsOrDsToDate: _to_date,
    exp.StrToTime: _to_timestamp,
    exp.ToNumber: _to_number,
    exp.ToBoolean: _to_boolean,
    exp.ToBinary: _to_binary,
    exp.DayOfWeekIso: _day_of_iso_week,
    exp.SHA2: _sha2,
    exp.ByteLength: lambda self, e: self.func("OCTET_LENGTH", e.this),
    exp.Hll: lambda self, e: self.func("APPROX_COUNT_DISTINCT", e.this, *e.expressions),
    exp.Stuff: _overlay,
    exp.Collate: _collate,
    exp.ArrayOverlaps: lambda self, e: self.func("ARRAYS_OVERLAP", e.this, e.expression),
    exp.Initcap: lambda self, e: self.func("INITCAP", e.this),
}
"""How the generator of Spark writes each of them."""
