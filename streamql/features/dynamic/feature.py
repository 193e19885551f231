"""What dynamic tables and materialized views register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamql.feature import Command, Feature, pages

if TYPE_CHECKING:
    from streamql.catalog.counts import Ended
    from streamql.catalog.stored import StoredTable
    from streamql.dialect.grammar import Grammar
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine import StatementType
    from streamql.engine.doctor.check import Check
    from streamql.engine.measures import Measure
    from streamql.engine.work import MakeWork
    from streamql.sources.definitions import Definition
    from streamql.sources.protocol import SourceType


def _grammar() -> Grammar:
    from streamql.features.dynamic.language.recognize import GRAMMAR

    return GRAMMAR


def _statements() -> Sequence[StatementType]:
    from streamql.features.dynamic.statements.table import STATEMENTS

    return STATEMENTS


def _source_types() -> Sequence[SourceType]:
    from streamql.features.dynamic.source.refresh import REFRESH
    from streamql.features.dynamic.source.table import DYNAMIC_TABLE, MATERIALIZED_VIEW

    return (DYNAMIC_TABLE, MATERIALIZED_VIEW, REFRESH)


def _stored(definition: Definition) -> StoredTable | None:
    from streamql.features.dynamic.source.table import TYPES, DynamicTable

    return DynamicTable.of(definition).stored if definition.type in TYPES else None


def _checks() -> Sequence[Check[Any]]:
    from streamql.features.dynamic.checks import DynamicTables

    return (DynamicTables(),)


def _counts(before: Mapping[str, int], ended: Ended) -> Mapping[str, int]:
    from streamql.features.dynamic.counts import counts

    return counts(before, ended)


def _measures() -> Sequence[Measure]:
    from streamql.features.dynamic.measures import MEASURE

    return (MEASURE,)


def _vocabulary() -> Vocabulary:
    from streamql.features.dynamic.vocabulary import VOCABULARY

    return VOCABULARY


def _work() -> Sequence[MakeWork]:
    from streamql.features.dynamic.refresh_jobs import RefreshWork

    return (RefreshWork,)


_TOPICS = pages(
    "create-dynamic-table", "refresh-dynamic-table", "explain-refresh", "verify-dynamic-table",
    "show-dynamic-tables", "show-refresh-history", "describe-dynamic-table", "alter-dynamic-table",
    "drop-dynamic-table",
)  # fmt: skip

DYNAMIC_TABLES = Feature(
    "dynamic tables",
    grammar=_grammar,
    statements=_statements,
    source_types=_source_types,
    stored=_stored,
    checks=_checks,
    counts=_counts,
    measures=_measures,
    vocabulary=_vocabulary,
    topics=_TOPICS,
    work=_work,
    commands=(
        Command(
            "refresh",
            "refresh dynamic tables once: all, some, or those that are due",
            "streamql.features.dynamic.command",
            in_session=True,
            reads_only=True,
        ),
    ),
)
