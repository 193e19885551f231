"""What streams register: the kernel's own statements, rewrites, source types, functions and pages for \\help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streamql.feature import Feature, pages

if TYPE_CHECKING:
    from streamql.dialect.grammar import Grammar
    from streamql.dialect.rewrites.rule import RewriteRule
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine import StatementType
    from streamql.engine.functions import SqlFunction
    from streamql.engine.measures import Measure
    from streamql.sources.protocol import SourceType


def _grammar() -> Grammar:
    from streamql.dialect.streams import GRAMMAR

    return GRAMMAR


def _rewrites() -> Sequence[RewriteRule]:
    from streamql.dialect.rewrites.rules import RULES

    return RULES


def _statements() -> Sequence[StatementType]:
    from streamql.features.streams.statements import STATEMENTS

    return STATEMENTS


def _source_types() -> Sequence[SourceType]:
    from streamql.sources.tables.source_type import TABLE

    return (TABLE,)


def _functions() -> Mapping[str, SqlFunction]:
    from streamql.engine.functions import FUNCTIONS

    return FUNCTIONS


def _measures() -> Sequence[Measure]:
    from streamql.features.streams.measures import MEASURE

    return (MEASURE,)


def _vocabulary() -> Vocabulary:
    from streamql.features.streams.vocabulary import VOCABULARY

    return VOCABULARY


_TOPICS = pages(
    "alter-table", "create-stream", "alter-stream", "drop-stream", "show-streams", "describe-stream",
    "show-create-stream", "select", "changes", "at", "insert", "merge", "transactions", "explain", "functions",
    "ledger",
)  # fmt: skip

STREAMS = Feature(
    "streams",
    grammar=_grammar,
    rewrites=_rewrites,
    statements=_statements,
    source_types=_source_types,
    functions=_functions,
    measures=_measures,
    vocabulary=_vocabulary,
    topics=_TOPICS,
)
