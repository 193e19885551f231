"""Text of the source system as a tree of sqlglot's. What sqlglot cannot read is refused with a reason."""

from __future__ import annotations

import logging
import re
from email.utils import parsedate_to_datetime

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from streamql.features.translate.dialects.read import READ
from streamql.features.translate.model import NotTranslatedError, System

UNKNOWN = "the translator does not know this statement"
_MAIL_TIME = re.compile(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
_WITHOUT_LENGTH = (
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ,
    exp.DType.TIMESTAMPTZ,
    exp.DType.DATETIME,
    exp.DType.TIME,
    exp.DType.BINARY,
    exp.DType.VARBINARY,
)
"""Types that have a length or a precision in other systems, and none in Spark."""

logging.getLogger("sqlglot").addHandler(logging.NullHandler())


def parse_sql(text: str, system: System) -> exp.Expr:
    """Returns the tree of one statement. Raises NotTranslatedError."""
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it warns of what becomes a Command, which is refused below
    try:
        trees = sqlglot.parse(text, read=READ[system])
    except ParseError as problem:
        raise NotTranslatedError(_parse_problem(problem, system)) from None
    except (SqlglotError, ValueError) as problem:
        raise NotTranslatedError(_first_line(problem)) from None
    except (IndexError, AttributeError, TypeError):  # its builders of functions expect other numbers of arguments
        raise NotTranslatedError(f"sqlglot cannot parse this as SQL of {system.title}") from None
    finally:
        logger.setLevel(level)
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or isinstance(tree, exp.Command):
        raise NotTranslatedError(UNKNOWN)
    for parameter in tree.find_all(exp.Parameter, exp.Placeholder):
        if parameter.parent is not None:
            raise NotTranslatedError(
                f"{parameter.sql(READ[system])} is a parameter or a stage", "write a literal, or a path"
            )
    _adapt_times(tree)
    for data_type in tree.find_all(exp.DataType):
        if data_type.this in _WITHOUT_LENGTH:
            data_type.set("expressions", [])
    return tree


def _adapt_times(tree: exp.Expr) -> None:
    """Times as mail has them, 'Fri, 01 May 2015 16:20:00 -0700', as Spark reads them."""
    for literal in tree.find_all(exp.Literal):
        if literal.is_string and isinstance(literal.parent, exp.Cast) and _MAIL_TIME.fullmatch(literal.name):
            try:
                time = parsedate_to_datetime(literal.name)
            except ValueError:  # a day that no month has: Spark reports it
                continue
            literal.replace(exp.Literal.string(time.isoformat(" ")))


def _parse_problem(problem: ParseError, system: System) -> str:
    first = problem.errors[0] if problem.errors else {}
    found = first.get("highlight")
    place = f" at {found}" if found else ""
    return f"sqlglot cannot parse this as SQL of {system.title}{place}"


def _first_line(problem: Exception) -> str:
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), UNKNOWN).rstrip(".")
