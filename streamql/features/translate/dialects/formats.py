"""Formats of times as Spark has them, where sqlglot leaves words of its own."""

from __future__ import annotations

from sqlglot import exp

_SIZES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

SPARK_LETTERS = {**{f"%f_{size}": "S" * digits for digits, size in enumerate(_SIZES)}, "%:z": "X" * 3, "%-z": "X"}
"""Spark's letters by sqlglot's words for the sizes of a fraction and for zones."""
_WITH_FORMAT = (
    exp.StrToDate,
    exp.StrToTime,
    exp.StrToUnix,
    exp.TimeToStr,
    exp.TsOrDsToDate,
    exp.TsOrDsToTime,
    exp.UnixToStr,
)
"""What sqlglot writes with a format of times."""


def is_auto(node: exp.Expr) -> bool:
    """Returns whether the format is AUTO, Snowflake's word for what a cast reads."""
    return node.text("format").upper() == "AUTO"


def with_quoted_letters(pattern: str) -> str:
    """Returns a format in which the T of ISO times is in quotes, as Spark needs it."""
    return pattern if "'" in pattern else pattern.replace("T", "'T'")


def quote_letters(tree: exp.Expr) -> None:
    """Changes the formats of times in a tree, in place, by `with_quoted_letters`."""
    for node in tree.find_all(*_WITH_FORMAT):
        pattern = node.args.get("format")
        if isinstance(pattern, exp.Literal) and pattern.is_string and not is_auto(node):
            pattern.set("this", with_quoted_letters(pattern.name))
