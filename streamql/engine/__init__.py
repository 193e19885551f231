"""Runs streamql's own statements: parses the text, and calls the function that runs statements of its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from streamql.dialect import parse
from streamql.errors import StreamqlError
from streamql.registered import records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["StatementType", "run", "statement_types", "without_text"]

R = TypeVar("R")


@dataclass(frozen=True)
class StatementType:
    """A type of statement, as the parser returns it, and how it is run.

    `run` takes the session, the statement and its text, and returns the rows to show; None: there are none to show. `columns`: of these
    rows, as DDL; empty: there are none. A function, if they depend on the statement.
    """

    type: type
    run: Callable[[SparkSession, Any, str], DataFrame | None]
    columns: str | Callable[[Any], str] = ""

    def columns_of(self, statement: object) -> str:
        """Returns the columns of a statement's rows, as DDL; empty: it has none."""
        return self.columns if isinstance(self.columns, str) else self.columns(statement)


def without_text(run: Callable[[SparkSession, Any], R]) -> Callable[[SparkSession, Any, str], R]:
    """Returns the `run` of a type of statement whose function does not take the text."""
    return lambda spark, statement, _: run(spark, statement)


@cache
def _types(records: tuple[Any, ...]) -> Mapping[type, StatementType]:
    return MappingProxyType({one.type: one for record in records for one in record.statements()})


def statement_types() -> Mapping[type, StatementType]:
    """Return the types of statements that the parser returns, and how they are run."""
    return _types(records())


def run(spark: SparkSession, text: str) -> DataFrame | None:
    """Runs one of streamql's statements, and returns its rows; None: it has no rows to show. If it raises StreamqlError, nothing was
    created, and no offset moved."""
    statement = parse(text)
    if statement is None:
        raise StreamqlError("INTERNAL_ERROR", "a statement that is not ours reached the engine")
    return statement_types()[type(statement)].run(spark, statement, text)
