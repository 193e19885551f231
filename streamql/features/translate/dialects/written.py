"""The dialect of sqlglot that is written: Spark 4.2 with Delta Lake.

It is Databricks' generator with other rules: open-source Spark 4.2 also has VARIANT, `v:path`, DATEADD and QUALIFY.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import ErrorLevel, exp, transforms
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.snowflake import Snowflake
from sqlglot.errors import UnsupportedError
from sqlglot.generator import Generator
from sqlglot.generators.databricks import DatabricksGenerator
from sqlglot.time import format_time

from streamql.features.translate.dialects.compiled import made
from streamql.features.translate.dialects.conversions import CONVERSIONS
from streamql.features.translate.dialects.formats import SPARK_LETTERS, quote_letters, with_quoted_letters
from streamql.features.translate.model import NotTranslatedError

_DATE_PARTS = re.compile("YY|MM|MON|DD|DY|HH|MI|SS|FF|TZH", re.IGNORECASE)

_ARGUMENT = re.compile(
    r"Argument '(?P<argument>\w+)' is not supported for expression '(?P<function>\w+)' when targeting .*"
)
"""What sqlglot says of an argument that its generator does not write."""


def _to_char(generator: DatabricksGenerator, node: exp.ToChar) -> str:
    """TO_CHAR without a format as a cast, with one of dates as DATE_FORMAT; Spark's is for numbers only."""
    pattern = node.args.get("format")
    if pattern is None:
        return f"CAST({generator.sql(node.this)} AS STRING)"
    if not pattern.is_string or not _DATE_PARTS.search(pattern.name):
        generator.unsupported("TO_CHAR with a format that is not of dates")
    general = with_quoted_letters(format_time(pattern.name, Snowflake.TIME_MAPPING) or pattern.name)
    written = format_time(general, _Written.INVERSE_TIME_MAPPING) or general
    return f"DATE_FORMAT({generator.sql(node.this)}, {generator.sql(exp.Literal.string(written))})"


_TYPES = {
    **DatabricksGenerator.TYPE_MAPPING,
    exp.DType.OBJECT: "VARIANT",
    exp.DType.JSON: "VARIANT",
    exp.DType.JSONB: "VARIANT",
    exp.DType.TIME: "STRING",
    exp.DType.USMALLINT: "INT",
    exp.DType.UINT: "BIGINT",
    exp.DType.UBIGINT: "DECIMAL(20, 0)",
}
_TRANSFORMS: dict[type[exp.Expr], Callable[..., str]] = {
    **DatabricksGenerator.TRANSFORMS,
    **CONVERSIONS,
    # Databricks' own list rewrites QUALIFY, and adds a column to SELECT * by it. Spark 4.2 has QUALIFY.
    exp.Select: transforms.preprocess(
        [transforms.eliminate_distinct_on, transforms.unnest_to_explode, transforms.any_to_exists]
    ),
    # Databricks' own list makes a temporary view of a temporary table. `ordinary.create` adapts the statement before.
    exp.Create: lambda self, e: self.create_sql(e),
    exp.ToChar: _to_char,
}


class _WrittenGenerator(DatabricksGenerator):
    __slots__ = ()
    TYPE_MAPPING = _TYPES
    TRANSFORMS = _TRANSFORMS


_LETTERS = {**Databricks.INVERSE_TIME_MAPPING, **SPARK_LETTERS}


class _Written(Databricks):
    INVERSE_TIME_MAPPING = _LETTERS

    def generate(self, expression: exp.Expr, copy: bool = True, **options: Any) -> str:
        """Returns the SQL of a tree."""
        tree = expression.copy() if copy else expression
        quote_letters(tree)
        return self.generator(**options).generate(tree, copy=False)

    def generator(self, **options: Any) -> Generator:
        """Returns a generator of this dialect."""
        generator = made(_WrittenGenerator, DatabricksGenerator(dialect=self, **options))
        # Its own is the one of the class that made it.
        generator._dispatch = {**generator._dispatch, **_TRANSFORMS}
        return generator


WRITTEN: type[Dialect] = _Written
"""The dialect of the translation."""


def sql_of(node: exp.Expr, pretty: bool = False) -> str:
    """Returns the SQL of a statement or of a part of it. Raises NotTranslatedError for what Spark has no words for."""
    try:
        return node.sql(
            WRITTEN, pretty=pretty, normalize_functions=False, unsupported_level=ErrorLevel.RAISE, max_text_width=110
        )
    except (UnsupportedError, ValueError, IndexError) as problem:
        raise NotTranslatedError(_reason(problem)) from None


def _reason(problem: Exception) -> str:
    """Returns the first line of what sqlglot's generator says."""
    lines = (line.strip() for line in str(problem).splitlines())
    line = next((line for line in lines if line), "sqlglot cannot write this for Spark").rstrip(".")
    if found := _ARGUMENT.fullmatch(line):
        return f"Spark has no {found['function'].upper()} with the argument {found['argument']}"
    return line.replace("_Written", "Spark")
