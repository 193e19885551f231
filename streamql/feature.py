"""What a feature registers, as data: the kernel, the console and the command know features only by these records.

The kernel reads a record field by field (`streamql.registered`), because the record names types of the whole kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from streamql.registered import records

if TYPE_CHECKING:  # some need PySpark, which `streamql --help` does not wait for
    from streamql.catalog.counts import Ended
    from streamql.catalog.observers import Observer
    from streamql.catalog.stored import StoredTable
    from streamql.catalog.tables import EventView
    from streamql.dialect.grammar import Grammar
    from streamql.dialect.rewrites.rule import RewriteRule
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine import StatementType
    from streamql.engine.doctor.check import Check
    from streamql.engine.functions import SqlFunction
    from streamql.engine.measures import Measure
    from streamql.engine.work import MakeWork
    from streamql.reading import ReadForm
    from streamql.sources.definitions import Definition
    from streamql.sources.protocol import SourceType
    from streamql.terms import TermType

_INSTALLED = Path(__file__).parent / "pages"
"""Where setup.py puts a copy of the reference of SQL. A checkout has none."""
_PAGES = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1] / "docs" / "sql"


@dataclass(frozen=True)
class Command:
    """A command of the command line: `streamql NAME`.

    `module`: where it is done, imported when it is asked for: `arguments(parser)`, and `run`, which returns the exit code. `in_session`:
    `run` takes (spark, options), else (options). `reads_only`: the command needs what is there: if there is no data directory, it makes
    none and says so. `is_brief`: it ends within seconds, so Java compiles less. `failed`: its exit code if it fails. `takes_all`: what
    stands behind its name is another program's, and is left in `options.arguments.rest` as it is; `arguments` is not called. The module may
    have `check(options)`, which says what is wrong before Spark starts. `refuses`: those of the options of all commands that would do
    nothing here.
    """

    name: str
    summary: str
    module: str
    in_session: bool
    reads_only: bool = False
    is_brief: bool = False
    failed: int = 1
    takes_all: bool = False
    refuses: tuple[str, ...] = ()

    @property
    def code(self) -> ModuleType:
        """Returns the module, imported."""
        return import_module(self.module)


@dataclass(frozen=True, eq=False)  # compared and hashed as itself, which costs nothing
class Feature:
    """What a feature registers. A field that is a function is called when it is asked: what it returns may need PySpark."""

    name: str
    grammar: Callable[[], Grammar | None] = lambda: None
    """How its statements are recognized and parsed."""
    rewrites: Callable[[], Sequence[RewriteRule]] = tuple
    """What it adds to statements of Spark, in the order in which the rules are asked."""
    statements: Callable[[], Sequence[StatementType]] = tuple
    """The types of its statements, and how they are run."""
    source_types: Callable[[], Sequence[SourceType]] = tuple
    """What streams can be made on."""
    forms: Callable[[], Mapping[str, ReadForm]] = dict
    """Forms in which a stream's changes can be read beside rows, by name."""
    terms: Callable[[], Sequence[TermType]] = tuple
    """What it keeps with streams, and does when they are read and consumed."""
    functions: Callable[[], Mapping[str, SqlFunction]] = dict
    """Functions in SQL, by name."""
    stored: Callable[[Definition], StoredTable | None] = lambda _: None
    """What a definition shows of another table's rows; None: it shows none."""
    event_views: Callable[[], Mapping[str, EventView]] = dict
    """Views over events of its own in the catalog's table of events, by name."""
    counts: Callable[[Mapping[str, int], Ended], Mapping[str, int]] = lambda *_: {}
    """What it counts of the consumptions of a stream, beside outcomes and rows. Takes what was counted before a consumption, and returns
    the numbers that change. They are kept with the stream, and must be small."""
    measures: Callable[[], Sequence[Measure]] = tuple
    """What `streamql metrics` shows of it."""
    new_table: Callable[[str, Mapping[str, str], Sequence[Mapping[str, Any]]], None] = lambda *_: None
    """Refuses a table that a statement is about to make: its name, its properties, and its columns as Spark's JSON schema has them."""
    checks: Callable[[], Sequence[Check[Any]]] = tuple
    """Checks of the doctor. Each says what it is about, and so when it runs."""
    vocabulary: Callable[[], Vocabulary | None] = lambda: None
    """What the console and the shell know of its words, beside the first keywords of statements, which the grammar has."""
    topics: Sequence[Path] = ()
    """Pages of which \\help makes its entries."""
    observers: Callable[[], Sequence[Observer]] = tuple
    """What is told of work that begins, and of what the catalog has recorded."""
    work: Callable[[], Sequence[MakeWork]] = tuple
    """What the scheduler runs."""
    commands: Sequence[Command] = ()
    """Commands of the command line."""
    explains: Callable[[Exception], Exception | None] = lambda _: None
    """What stands in the place of an exception of the JVM; None: the exception itself."""


def pages(*names: str) -> tuple[Path, ...]:
    """Returns pages of the reference of SQL, by their names without `.md`."""
    return tuple(_PAGES / f"{name}.md" for name in names)


def features() -> Sequence[Feature]:
    """Return the features, in the order in which they are asked."""
    return records()
