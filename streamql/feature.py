"""What a feature registers, as data: the kernel, the console and the command know features only by these records.

The list of features is `streamql.features.FEATURES`. This module imports the list by its name at the first use. So the kernel imports no
feature, and a feature may import the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamql.catalog.states import StreamState
    from streamql.catalog.stored import StoredTable
    from streamql.consume.statement import Reads
    from streamql.dialect.grammar import Grammar
    from streamql.engine.doctor.check import Check
    from streamql.model import Interval
    from streamql.sources.definitions import Definition
    from streamql.sources.protocol import OpenSource, SourceType

R = TypeVar("R")

LIST = "streamql.features"
"""The module that lists the features."""

_INSTALLED = Path(__file__).parent / "pages"
"""Where setup.py puts a copy of the reference of SQL. A checkout has none."""
_PAGES = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1] / "docs" / "sql"


@dataclass(frozen=True)
class StatementType:
    """A type of statement, as the parser returns it, and how it is run.

    `run` takes the session, the statement and its text, and returns the rows to show; None: there are none to show. `columns`: of these
    rows, as DDL; empty: there are none. A function, if they depend on the statement. `note`: what the user reads once a
    statement without rows has run; empty: nothing.
    """

    type: type
    run: Callable[[SparkSession, Any, str], DataFrame | None]
    columns: str | Callable[[Any], str] = ""
    note: Callable[[Any], str] = lambda _: ""

    def columns_of(self, statement: object) -> str:
        """Returns the columns of a statement's rows, as DDL; empty: it has none."""
        return self.columns if isinstance(self.columns, str) else self.columns(statement)


@dataclass(frozen=True)
class Command:
    """A command of the command line: `streamql NAME`.

    `module`: where it is done, imported when it is asked for: `arguments(parser)`, and `run`, which returns the exit code. `in_session`:
    `run` takes (spark, options), else (options). `reads_only`: the command needs what is there: if there is no data directory, it makes
    none and says so. `failed`: its exit code if it fails. `takes_all`: what stands behind its name is another program's, and is left in
    `options.arguments.rest` as it is; `arguments` is not called. The module may have `check(options)`, which says what is wrong before
    Spark starts. `refuses`: those of the options of all commands that would do nothing here.
    """

    name: str
    summary: str
    module: str
    in_session: bool
    reads_only: bool = False
    failed: int = 1
    takes_all: bool = False
    refuses: tuple[str, ...] = ()

    @property
    def code(self) -> ModuleType:
        """Returns the module, imported."""
        return import_module(self.module)


ReadForm = Callable[["StreamState", "OpenSource", "Interval"], "DataFrame"]
"""Returns the changes of an interval in a form of its own, with a hidden change type as the last column. Lazy."""

SqlFunction = Callable[["SparkSession", "list[Any]", "Reads"], Any]
"""A function in SQL: takes the session, its arguments and what its statement reads; returns a value, or a node of Spark's plan."""


@dataclass(frozen=True, eq=False)  # compared and hashed as itself, which costs nothing
class Feature:
    """What a feature registers. A field that is a function is called when it is asked: what it returns may need PySpark.

    `grammar`: how its statements are recognized and parsed. `statements`: their types, and how they are run. `source_types`: what streams
    can be made on. `forms`: in which a stream's changes can be read beside rows, by name. `functions`: in SQL, by name. `stored`: what
    a definition shows of another table's rows; None: it shows none. `checks`: of the doctor, in their order. `topics`: the pages of which
    \\help makes its entries. `explains`: what stands in the place of an exception of the JVM; None: the exception itself.
    """

    name: str
    grammar: Callable[[], Grammar | None] = lambda: None
    statements: Callable[[], Sequence[StatementType]] = tuple
    source_types: Callable[[], Sequence[SourceType]] = tuple
    forms: Callable[[], Mapping[str, ReadForm]] = dict
    functions: Callable[[], Mapping[str, SqlFunction]] = dict
    stored: Callable[[Definition], StoredTable | None] = lambda _: None
    checks: Callable[[], Sequence[Check[Any]]] = tuple
    topics: Sequence[Path] = ()
    commands: Sequence[Command] = ()
    explains: Callable[[Exception], Exception | None] = lambda _: None


def pages(*names: str) -> tuple[Path, ...]:
    """Returns pages of the reference of SQL, by their names without `.md`."""
    return tuple(_PAGES / f"{name}.md" for name in names)


def without_text(run: Callable[[SparkSession, Any], R]) -> Callable[[SparkSession, Any, str], R]:
    """Returns the `run` of a type of statement whose function does not take the text."""
    return lambda spark, statement, _: run(spark, statement)


def features() -> Sequence[Feature]:
    """Returns the features, in the order in which the kernel asks them."""
    found: Sequence[Feature] = import_module(LIST).FEATURES
    return found


def grammars() -> Iterator[Grammar]:
    """Yields how the statements of each feature are recognized."""
    return (grammar for feature in features() if (grammar := feature.grammar()) is not None)


@cache
def _statement_types(_: Sequence[Feature]) -> Mapping[type, StatementType]:
    return MappingProxyType({one.type: one for feature in features() for one in feature.statements()})


def statement_types() -> Mapping[type, StatementType]:
    """Returns the types of statements that the parser returns, and how they are run."""
    return _statement_types(tuple(features()))


def read_form(name: str) -> ReadForm:
    """Returns how a stream's changes are read in the form of a name. Raises KeyError if no feature has the form."""
    return {known: form for feature in features() for known, form in feature.forms().items()}[name]


def sql_functions() -> dict[str, SqlFunction]:
    """Returns the functions in SQL, by name."""
    return {name: function for feature in features() for name, function in feature.functions().items()}


def explained(e: Exception) -> Exception | None:
    """Returns what stands in the place of an exception of the JVM; None: the exception itself."""
    return next((found for feature in features() if (found := feature.explains(e)) is not None), None)
