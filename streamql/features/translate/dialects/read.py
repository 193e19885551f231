"""The dialects of sqlglot that are read: those of the three systems.

sqlglot has no dialect for Databend or ClickZetta. The nearest to Databend is Snowflake's: they share casts, semi-structured data and
metadata columns. The nearest to ClickZetta is Databricks': its SQL is that of Spark with types and properties of its own.

A class of sqlglot's that may be compiled (parsers are, dialects and tokenizers are not) gets its subclass by `compiled.made`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.snowflake import Snowflake
from sqlglot.helper import seq_get
from sqlglot.parser import Parser
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.parsers.snowflake import SnowflakeParser
from sqlglot.tokenizer_core import TokenType

from streamql.features.translate.dialects.compiled import made
from streamql.features.translate.model import System

_NAME_QUOTES: list[str | tuple[str, str]] = ['"', "`"]
"""Names arrive in backquotes: see `text.lexical.names_in_backquotes`."""


_SNOWFLAKE_KEYWORDS = {
    **Snowflake.Tokenizer.KEYWORDS,
    "REAL": TokenType.DOUBLE,  # all of its floating-point types have 64 bits
    "FLOAT4": TokenType.DOUBLE,
}
_BITMAP = {"BITMAP": TokenType.HLLSKETCH}
"""A type that sqlglot does not have, in the place of one that no system here has. It is refused, and stays a name elsewhere."""


class _SnowflakeRead(Snowflake):
    class Tokenizer(Snowflake.Tokenizer):
        IDENTIFIERS = _NAME_QUOTES
        KEYWORDS = _SNOWFLAKE_KEYWORDS


def _date_delta(args: list[exp.Expr], sign: int) -> exp.Expr:
    """Databend's DATE_ADD(unit, number, date)."""
    if len(args) != 3:
        return exp.Anonymous(this="DATE_ADD", expressions=args)
    unit, number, date = args
    delta = number if sign > 0 else exp.Neg(this=exp.paren(number))
    return exp.DateAdd(this=date, expression=delta, unit=exp.var(unit.name))


def _days_between(args: list[exp.Expr]) -> exp.Expr:
    """ClickZetta's DATEDIFF(a, b), which is Spark's: by the dates alone. sqlglot would make DATEDIFF(DAY, b, a) of it."""
    if len(args) == 2:
        return exp.Anonymous(this="DATEDIFF", expressions=args)
    return exp.DateDiff(this=seq_get(args, 2), expression=seq_get(args, 1), unit=seq_get(args, 0))


def _date_format(args: list[exp.Expr]) -> exp.Expr:
    """Databend's DATE_FORMAT, whose format is one of strftime."""
    if len(args) == 2 and args[1].is_string and "%" in args[1].name:
        return exp.TimeToStr(this=args[0], format=args[1])
    return exp.Anonymous(this="DATE_FORMAT", expressions=args)


def _whole_units(args: list[exp.Expr]) -> exp.Expr:
    """Databend's DATE_BETWEEN(unit, a, b), which is Spark's DATEDIFF."""
    if len(args) != 3:
        return exp.Anonymous(this="DATE_BETWEEN", expressions=args)
    return exp.DateDiff(this=args[2], expression=args[1], unit=exp.var(args[0].name))


_OTHER_ARGUMENTS = (
    "ARRAY_CONTAINS",
    "ARRAY_POSITION",
    "ARRAY_SLICE",
    "ARRAY_SORT",
    "ARRAY_GENERATE_RANGE",
    "ARRAY_FLATTEN",
    "ARRAYS_OVERLAP",
)
"""Functions of Databend whose arguments are not those of Snowflake's function of the same name."""
_DATABEND_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: build for name, build in SnowflakeParser.FUNCTIONS.items() if name not in _OTHER_ARGUMENTS},
    "ARRAY_GET": SnowflakeParser.FUNCTIONS["GET"],
    "DATE_DIFF": SnowflakeParser.FUNCTIONS["DATEDIFF"],
    "DATE_BETWEEN": _whole_units,
    "DATE_FORMAT": _date_format,
    "TO_DAY_OF_WEEK": lambda args: exp.DayOfWeekIso(this=seq_get(args, 0)),
    "TO_STRING": lambda args: exp.cast(args[0], exp.DType.TEXT),
    "TODAY": lambda _: exp.CurrentDate(),
    "DATE_ADD": lambda args: _date_delta(args, 1),
    "DATE_SUB": lambda args: _date_delta(args, -1),
}
_DATABEND_COMMENTS: list[str | tuple[str, str]] = ["--", ("/*", "*/")]
_DATABEND_KEYWORDS = {
    **{word: type_ for word, type_ in Snowflake.Tokenizer.KEYWORDS.items() if word != "SAMPLE"},  # it is a name there
    **_BITMAP,
    "//": TokenType.DIV,
    "UINT8": TokenType.UTINYINT,
    "UINT16": TokenType.USMALLINT,
    "UINT32": TokenType.UINT,
    "UINT64": TokenType.UBIGINT,
    "INT8": TokenType.TINYINT,
    "INT16": TokenType.SMALLINT,
    "INT32": TokenType.INT,
    "INT64": TokenType.BIGINT,
    "FLOAT32": TokenType.FLOAT,
    "FLOAT64": TokenType.DOUBLE,
    "NULLABLE": TokenType.NULLABLE,
    "TUPLE": TokenType.STRUCT,
}


_DATABEND_BITWISE: dict[TokenType, type[exp.Binary]] = {
    token: node for token, node in SnowflakeParser.BITWISE.items() if token is not TokenType.CARET
}
_DATABEND_EXPONENT: dict[TokenType, type[exp.Expr]] = {TokenType.CARET: exp.Pow}


class _DatabendParser(SnowflakeParser):
    __slots__ = ()
    FUNCTIONS = _DATABEND_FUNCTIONS
    TABLE_ALIAS_TOKENS = SnowflakeParser.TABLE_ALIAS_TOKENS - {TokenType.WINDOW}
    BITWISE = _DATABEND_BITWISE
    EXPONENT = _DATABEND_EXPONENT


class _DatabendRead(Snowflake):
    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(Snowflake.Tokenizer):
        IDENTIFIERS = _NAME_QUOTES
        KEYWORDS = _DATABEND_KEYWORDS
        COMMENTS = _DATABEND_COMMENTS

    def parser(self, **options: Any) -> Parser:
        """Returns a parser of this dialect."""
        return made(_DatabendParser, SnowflakeParser(dialect=self, **options))


_CLICKZETTA_KEYWORDS = {**Databricks.Tokenizer.KEYWORDS, **_BITMAP, "JSON": TokenType.JSON}


_CLICKZETTA_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **DatabricksParser.FUNCTIONS,
    "DATEDIFF": _days_between,
    "DATE_DIFF": _days_between,
}


class _ClickzettaParser(DatabricksParser):
    __slots__ = ()
    FUNCTIONS = _CLICKZETTA_FUNCTIONS


class _ClickzettaRead(Databricks):
    TABLESAMPLE_SIZE_IS_PERCENT = True

    class Tokenizer(Databricks.Tokenizer):
        KEYWORDS = _CLICKZETTA_KEYWORDS

    def parser(self, **options: Any) -> Parser:
        """Returns a parser of this dialect."""
        return made(_ClickzettaParser, DatabricksParser(dialect=self, **options))


READ: dict[System, type[Dialect]] = {
    System.SNOWFLAKE: _SnowflakeRead,
    System.DATABEND: _DatabendRead,
    System.CLICKZETTA: _ClickzettaRead,
}
"""The dialect of each system's scripts."""
