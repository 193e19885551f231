"""Functions that Spark has by the same name, and that return another value there: they are spelled otherwise, or get a note."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.dialects.snowflake import Snowflake

from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System
from streamql.features.translate.queries.types import VARIANT, type_of, types_of_columns

_SKIPS_NULL = "{0} returns NULL if an argument is NULL in {1}; Spark's {0} skips NULL"
_BOOLEANS = "Spark's cast to BOOLEAN does not accept 'on' and 'off'"
_TIMES = "a TIME became a STRING, because Delta Lake has no TIME: the cast accepts any text"
_KEEPS_NULL = "an object keeps the fields whose value is NULL here; OBJECT_CONSTRUCT leaves them out"
_WORDS = "Spark's INITCAP begins words behind spaces only"
_HASHES = "Spark's HASH returns other numbers"
_BITMAPS = "Spark's {} takes a BINARY, which bitmap_construct_agg makes of 32,768 bits"
_TYPE_NAMES = "Spark's TYPEOF names types otherwise, and is 'variant' for a VARIANT: SCHEMA_OF_VARIANT names its type"
_JSON_OF_TEXT = "a cast to JSON became PARSE_JSON, which takes a text"
_OF_BITMAPS = ("BITMAP_COUNT", "BITMAP_AND_AGG", "BITMAP_OR_AGG")
_ELEMENTS = ("STRING", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")
"""The types at the end of JSON_EXTRACT_STRING and the like."""
_TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE", "SECOND")
_DAY_OF_WEEK = ("DAYOFWEEK", "DAY_OF_WEEK", "DOW", "DW", "WEEKDAY")
_DAY_OF_ISO_WEEK = ("DAYOFWEEKISO", "DAYOFWEEK_ISO", "WEEKDAY_ISO", "DOW_ISO", "DW_ISO", "ISODOW")
_TRY_TIMESTAMPS = {
    "TRY_TO_TIMESTAMP_LTZ": exp.DType.TIMESTAMPLTZ,
    "TRY_TO_TIMESTAMP_TZ": exp.DType.TIMESTAMPLTZ,
    "TRY_TO_TIMESTAMP_NTZ": exp.DType.TIMESTAMPNTZ,
}


def adapt_values(tree: exp.Expr, context: Context) -> list[str]:
    """Changes the functions of a statement in place; the notes."""
    notes = list(_json_casts(tree, context))
    if context.system is not System.SNOWFLAKE:  # its functions of bitmaps are Spark's
        called = {c.name.upper() if isinstance(c, exp.Anonymous) else c.sql_name() for c in tree.find_all(exp.Func)}
        notes += [_BITMAPS.format(name) for name in _OF_BITMAPS if name in called]
    if context.system is System.CLICKZETTA:
        _typed_elements(tree)
        return notes
    for node in reversed(list(tree.find_all(exp.DayOfWeek, exp.Extract, exp.DateDiff, exp.Anonymous))):
        replaced = _replaced(node)
        if replaced is not None:
            node.replace(replaced)
    _keys_of_objects(tree, context)
    return [*notes, *_objects(tree, context.system), *_notes(tree, context)]


def _typed_elements(tree: exp.Expr) -> None:
    """Writes ClickZetta's json_extract_string(v, '$.a') and the like as try_variant_get."""
    for call in reversed(list(tree.find_all(exp.Anonymous))):
        start, _, data_type = call.name.upper().rpartition("_")
        if start == "JSON_EXTRACT" and data_type in _ELEMENTS and len(call.expressions) == 2:
            arguments = [argument.copy() for argument in call.expressions]
            call.replace(exp.Anonymous(this="TRY_VARIANT_GET", expressions=[*arguments, exp.Literal.string(data_type)]))


def _notes(tree: exp.Expr, context: Context) -> Iterator[str]:
    for node in tree.find_all(exp.Initcap, exp.Typeof, exp.Anonymous):
        if isinstance(node, exp.Initcap):
            _check_delimiters(node)
            yield _WORDS
        elif isinstance(node, exp.Typeof):
            yield _TYPE_NAMES
        elif node.name.upper() in ("HASH", "HASH_AGG"):
            yield _HASHES
    for node in tree.find_all(exp.Greatest, exp.Least, exp.ToBoolean, exp.TsOrDsToTime):
        if isinstance(node, exp.ToBoolean):
            yield _BOOLEANS
        elif isinstance(node, exp.TsOrDsToTime):
            yield _TIMES
        elif not node.args.get("ignore_nulls") and not all(isinstance(e, exp.Literal) for e in node.iter_expressions()):
            yield _SKIPS_NULL.format(node.key.upper(), context.system.title)


def _replaced(node: exp.Expr) -> exp.Expr | None:
    """Returns what Spark has in its place; None: the same."""
    if isinstance(node, exp.DayOfWeek):
        return _day_of_week(node.this)
    if isinstance(node, exp.Extract):
        part = node.name.upper()
        if part in _DAY_OF_WEEK:
            return _day_of_week(node.expression)
        return exp.DayOfWeekIso(this=node.expression.copy()) if part in _DAY_OF_ISO_WEEK else None
    if isinstance(node, exp.DateDiff):
        return _boundaries(node) if node.args.get("date_part_boundary") else None
    return _converted(node)


def _day_of_week(date: exp.Expr) -> exp.Expr:
    """Counts from Sunday, which is 0 there and 1 here."""
    day = exp.Anonymous(this="DAYOFWEEK", expressions=[date.copy()])
    return exp.paren(exp.Sub(this=day, expression=exp.Literal.number(1)))


def _boundaries(node: exp.DateDiff) -> exp.Expr | None:
    """DATEDIFF counts the boundaries between two times there; Spark counts whole units, and days by the dates alone."""
    unit = node.text("unit").upper()
    later, earlier = node.this, node.expression
    if unit == "DAY":
        return exp.Anonymous(this="DATEDIFF", expressions=[later.copy(), earlier.copy()])
    if unit not in _TRUNCATED:
        return None
    starts = [
        exp.Anonymous(this="DATE_TRUNC", expressions=[exp.Literal.string(unit), e.copy()]) for e in (earlier, later)
    ]
    return exp.Anonymous(this="DATEDIFF", expressions=[exp.var(unit), *starts])


def _converted(node: exp.Expr) -> exp.Expr | None:
    """TRY_TO_TIMESTAMP_LTZ(x) and the like, for which sqlglot has no class."""
    arguments = node.expressions
    data_type = _TRY_TIMESTAMPS.get(node.name.upper())
    if data_type is None or len(arguments) != 1:
        return None
    return exp.TryCast(this=arguments[0].copy(), to=exp.DataType(this=data_type))


def _check_delimiters(node: exp.Initcap) -> None:
    given = node.args.get("expression")
    if given is not None and given.name != Snowflake.INITCAP_DEFAULT_DELIMITER_CHARS:
        raise NotTranslatedError("INITCAP with delimiters: Spark's begins words behind spaces", "INITCAP(a)")


def _json_casts(tree: exp.Expr, context: Context) -> Iterator[str]:
    """Writes a cast to JSON, which reads a text, as PARSE_JSON. Yields notes."""
    types = types_of_columns(tree, context)
    for cast in reversed(list(tree.find_all(exp.Cast))):
        if cast.to.this not in (exp.DType.JSON, exp.DType.JSONB):
            continue
        type_word = type_of(cast.this, types, None)
        if type_word == VARIANT:
            cast.replace(cast.this.copy())
            continue
        if not cast.this.is_string:
            yield _JSON_OF_TEXT
        cast.replace(exp.ParseJSON(this=cast.this.copy(), safe=isinstance(cast, exp.TryCast)))


def _keys_of_objects(tree: exp.Expr, context: Context) -> None:
    """OBJECT_KEYS of a VARIANT: Spark's JSON_OBJECT_KEYS takes a text."""
    types = types_of_columns(tree, context)
    for node in tree.find_all(exp.JSONKeys):
        if type_of(node.this, types, context.system) == VARIANT:
            node.set("this", exp.Anonymous(this="TO_JSON", expressions=[node.this.copy()]))


# --- objects


def _objects(tree: exp.Expr, system: System) -> Iterator[str]:
    """OBJECT_CONSTRUCT and, in Snowflake, `{'key': value}`, which are VARIANT, not a STRUCT of Spark's. Yields notes."""
    for node in reversed(list(tree.find_all(exp.StarMap, exp.Struct, exp.JSONObject))):
        if isinstance(node, exp.StarMap):
            _replace(node, exp.Anonymous(this="STRUCT", expressions=[exp.Star()]))
            yield _KEEPS_NULL
            continue
        pairs = node.expressions
        if not pairs:
            node.replace(exp.Anonymous(this="PARSE_JSON", expressions=[exp.Literal.string("{}")]))
        if not pairs or not all(isinstance(pair, exp.PropertyEQ | exp.JSONKeyValue) for pair in pairs):
            continue
        is_constant = all(isinstance(pair.this, exp.Identifier) for pair in pairs)
        if is_constant and system is System.DATABEND:
            continue  # a MAP
        is_named = is_constant or all(pair.this.is_string for pair in pairs)
        fields: list[exp.Expr] = []
        for pair in pairs:
            key = exp.Literal.string(pair.name) if is_named else pair.this.copy()
            fields += (key, pair.expression.copy())
        _replace(node, exp.Anonymous(this="NAMED_STRUCT" if is_named else "MAP", expressions=fields))
        if not is_constant and (isinstance(node, exp.Struct) or system is System.DATABEND):
            yield _KEEPS_NULL


def _replace(node: exp.Expr, fields: exp.Expr) -> None:
    """Puts the fields as a VARIANT in the place of a node, and of a cast to VARIANT around it."""
    parent = node.parent
    is_cast = isinstance(parent, exp.Cast) and parent.to.this in (exp.DType.VARIANT, exp.DType.OBJECT)
    target = parent if is_cast and parent is not None else node
    target.replace(exp.Anonymous(this="TO_VARIANT_OBJECT", expressions=[fields]))
