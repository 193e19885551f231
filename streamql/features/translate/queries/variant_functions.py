"""Functions that make a VARIANT, or ask for the type of its value: TO_VARIANT, AS_INTEGER, IS_ARRAY and the like."""

from __future__ import annotations

from sqlglot import exp

_WHOLE = "^BIGINT$"
_EXACT = "^(BIGINT|DECIMAL.*)$"
_NUMBER = "^(BIGINT|DECIMAL.*|FLOAT|DOUBLE)$"
_TEXT = "^STRING$"
_TYPES: dict[str, tuple[str, str]] = {
    "INTEGER": (_WHOLE, "BIGINT"),
    "DECIMAL": (_EXACT, "DECIMAL"),
    "NUMBER": (_EXACT, "DECIMAL"),
    "DOUBLE": (_NUMBER, "DOUBLE"),
    "REAL": (_NUMBER, "DOUBLE"),
    "FLOAT": (_NUMBER, "DOUBLE"),
    "VARCHAR": (_TEXT, "STRING"),
    "CHAR": (_TEXT, "STRING"),
    "STRING": (_TEXT, "STRING"),
    "BOOLEAN": ("^BOOLEAN$", "BOOLEAN"),
    "DATE": ("^DATE$", "DATE"),
    "BINARY": ("^BINARY$", "BINARY"),
    "TIMESTAMP_NTZ": ("^TIMESTAMP_NTZ$", "TIMESTAMP_NTZ"),
    "TIMESTAMP_LTZ": ("^TIMESTAMP$", "TIMESTAMP"),
    "ARRAY": ("^ARRAY", ""),
    "OBJECT": ("^OBJECT", ""),
}
"""By the word in the function's name: a pattern of what SCHEMA_OF_VARIANT calls the type, and Spark's type; empty: it stays a VARIANT."""
_KNOWN_TO_SQLGLOT = (exp.ToVariant, exp.IsArray, exp.IsNullValue, exp.StripNullValue)
_DECIMAL_DEFAULTS = ("38", "0")


def adapt_variant_functions(tree: exp.Expr) -> None:
    """Changes the calls in place."""
    for call in reversed(list(tree.find_all(*_KNOWN_TO_SQLGLOT, exp.Anonymous))):
        is_known = isinstance(call, _KNOWN_TO_SQLGLOT)
        arguments = [call.this] if is_known else call.expressions
        name = call.sql_name() if is_known else call.name.upper()
        if arguments and (found := _replaced(name, arguments)) is not None:
            call.replace(found)


def _replaced(name: str, arguments: list[exp.Expr]) -> exp.Expr | None:
    """Returns what Spark has in its place; None: it is another function."""
    value = arguments[0]
    verb, _, word = name.partition("_")
    if len(arguments) == 1:
        if name in ("TO_VARIANT", "TO_OBJECT"):
            return exp.cast(value.copy(), exp.DType.VARIANT)
        if name == "JSON_TO_STRING":
            return _call("TO_JSON", value)
        if name == "IS_NULL_VALUE":
            return _call("IS_VARIANT_NULL", value)
        if name == "STRIP_NULL_VALUE":
            return exp.If(this=_call("IS_VARIANT_NULL", value), true=exp.null(), false=value.copy())
        if verb == "IS" and word in _TYPES:
            return _is_of(word, value)
    if verb != "AS" or word not in _TYPES:
        return None
    type_word = _TYPES[word][1]
    if type_word == "DECIMAL":
        given = [argument.sql() for argument in arguments[1:]]
        type_word = f"DECIMAL({', '.join((*given, *_DECIMAL_DEFAULTS[len(given) :]))})"
    elif len(arguments) > 1:
        return None
    read = exp.cast(value.copy(), type_word, dialect="databricks") if type_word else value.copy()
    return exp.If(this=_is_of(word, value), true=read, false=exp.null())


def _is_of(word: str, value: exp.Expr) -> exp.Expr:
    return _call("REGEXP_LIKE", _call("SCHEMA_OF_VARIANT", value), exp.Literal.string(_TYPES[word][0]))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
