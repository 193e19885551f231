"""What mirrors register: a statement, a rewrite, a type of source, a command, a check, a page for \\help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.rows import small_frame
from streamql.dialect.grammar import Grammar, Parse, Phrase
from streamql.dialect.rewrites.rule import Clause, ClauseRule, SparkStatement
from streamql.dialect.statements import Statement
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, chain, key_at
from streamql.dialect.text.splices import Splice
from streamql.engine import StatementType, without_text
from streamql.engine.doctor.check import Check, Finding, Problem
from streamql.feature import Command, Feature
from streamql.model import TableSource
from streamql.names import Name
from streamql.sources.protocol import SourceType
from streamql.sources.tables.source_type import find_table
from streamql.sources.tables.table import OpenTable, open_table

PREFIX = "mirror_of_"
GRAMMAR = "SHOW MIRROR STREAMS"
COLUMNS = "name STRING, table STRING"


@dataclass(frozen=True)
class ShowMirrorStreams(Statement):
    """SHOW MIRROR STREAMS."""


@dataclass(frozen=True)
class Mirror(TableSource):
    """A mirror as a stream refers to it. Its name is another one than that of its table."""

    @property
    def type_name(self) -> str:
        return "mirror"


def _recognize(cursor: Cursor) -> Parse | None:
    return _parse if cursor.take("SHOW", "MIRROR", "STREAMS") else None


def _parse(cursor: Cursor) -> ShowMirrorStreams:
    cursor.grammar = GRAMMAR
    cursor.expect("SHOW", "MIRROR", "STREAMS")
    return ShowMirrorStreams()


def _mirror_of(statement: SparkStatement, relation: Relation) -> Clause | None:
    """`FROM MIRROR OF t` reads t."""
    tokens = statement.cursor.tokens
    table, after = chain(tokens, relation.after + 1)
    if (tokens[relation.first].key, key_at(tokens, relation.after)) != ("MIRROR", "OF") or not table:
        return None
    return Clause(after, (Splice(tokens[relation.first].start, tokens[relation.after].end, ""),))


def _on_mirrors(states: Sequence[StreamState]) -> list[StreamState]:
    return [state for state in states if state.stream.source.type_name == "mirror"]


def _show(spark: SparkSession, _: ShowMirrorStreams) -> DataFrame:
    found = _on_mirrors(catalog_of(spark).all(spark))
    return small_frame(spark, COLUMNS, [[str(s.name), str(s.stream.source.name)] for s in found])


def _find(spark: SparkSession, name: Name) -> Mirror | None:
    if not name.object.startswith(PREFIX):
        return None
    table = find_table(spark, replace(name, object=name.object.removeprefix(PREFIX)))
    return None if table is None else Mirror(name, table.path, table.table_id)


def _open(spark: SparkSession, source: Mirror) -> OpenTable:
    name = replace(source.name, object=source.name.object.removeprefix(PREFIX))
    return replace(open_table(spark, TableSource(name, source.path, source.table_id)), ref=source)


class Mirrors(Check[None]):
    """Streams on mirrors: each is worth a warning."""

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:
        for state in _on_mirrors(states):
            yield Problem(Finding(str(state.name), "warning", "MIRROR", "it is on a mirror", "DROP STREAM it"))


MIRRORS = Feature(
    "mirrors",
    grammar=lambda: Grammar(
        frozenset(("SHOW",)), _recognize, (Phrase(("SHOW", "MIRROR", "STREAMS")),), sources=(("MIRROR",),)
    ),
    rewrites=lambda: (ClauseRule("MIRROR OF", re.compile("MIRROR", re.IGNORECASE), _mirror_of),),
    statements=lambda: (StatementType(ShowMirrorStreams, without_text(_show), COLUMNS),),
    source_types=lambda: (
        SourceType("mirror", "MIRROR", Mirror.from_json, _open, _find, statement_types=("TABLE", "MIRROR")),
    ),
    checks=lambda: (Mirrors(),),
    topics=(Path(__file__).with_name("show-mirror-streams.md"),),
    commands=(
        Command("mirrors", "print the mirrors", "tests.features.mirrors.command", in_session=True, reads_only=True),
    ),
)
