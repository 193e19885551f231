"""Functions of dates and times that give another type or another day in Spark."""

from __future__ import annotations

from sqlglot import exp

from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import System
from streamql.features.translate.queries.types import DATE, type_of, types_of_columns
from streamql.features.translate.wording import NO_TIME

_LAST_DAYS = (
    "ADD_MONTHS of the last day of a month gives the last day of a month in {}; Spark keeps the number of the day"
)
_OF_DAYS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")
_NOW = f"CURRENT_TIME became a STRING: {NO_TIME}"
_TIMES = "a cast to TIME became a cast to STRING: Delta Lake has no TIME, and the cast accepts any text"


def adapt_dates(tree: exp.Expr, context: Context) -> list[str]:
    """Changes the functions in place; the notes."""
    notes: list[str] = []
    for now in list(tree.find_all(exp.CurrentTime, exp.Localtime)):
        now.replace(_time_of_day())
        notes = [_NOW]
    if context.system is System.CLICKZETTA:
        return notes
    types = types_of_columns(tree, context)
    nodes = (exp.CurrentTimestamp, exp.Week, exp.DateAdd, exp.TimestampTrunc, exp.Interval)
    for node in reversed(list(tree.find_all(*nodes))):
        replaced = _replaced(node, types)
        if replaced is not None:
            node.replace(replaced)
    if any(node.args.get("preserve_end_of_month") for node in tree.find_all(exp.AddMonths)):
        notes.append(_LAST_DAYS.format(context.system.title))
    if any(cast.to.this is exp.DType.TIME for cast in tree.find_all(exp.Cast)):
        notes.append(_TIMES)
    return notes


def _replaced(node: exp.Expr, types: dict[str, str]) -> exp.Expr | None:
    """Returns what Spark has in its place; None: the same."""
    if isinstance(node, exp.CurrentTimestamp):
        return _utc() if node.args.get("sysdate") else None
    if isinstance(node, exp.Week):
        return exp.Anonymous(this="WEEKOFYEAR", expressions=[node.this.copy()])
    if isinstance(node, exp.Interval):
        value = node.this
        has_commas = node.args.get("unit") is None and isinstance(value, exp.Literal) and "," in value.name
        return exp.Interval(this=exp.Literal.string(value.name.replace(",", " "))) if has_commas else None
    is_cast = isinstance(node.parent, exp.Cast) and node.arg_key == "this"
    if node.text("unit").upper() in _OF_DAYS and type_of(node.this, types, None) == DATE and not is_cast:
        return exp.cast(node.copy(), exp.DType.DATE)  # Spark makes a TIMESTAMP of a DATE
    return None


def _time_of_day() -> exp.Expr:
    now = exp.Anonymous(this="CURRENT_TIMESTAMP", expressions=[])
    return exp.Anonymous(this="DATE_FORMAT", expressions=[now, exp.Literal.string("HH:mm:ss")])


def _utc() -> exp.Expr:
    """SYSDATE, which is the time in UTC without a time zone."""
    now = exp.Anonymous(this="CURRENT_TIMESTAMP", expressions=[])
    zone = exp.Anonymous(this="CURRENT_TIMEZONE", expressions=[])
    return exp.cast(exp.Anonymous(this="TO_UTC_TIMESTAMP", expressions=[now, zone]), exp.DType.TIMESTAMPNTZ)
