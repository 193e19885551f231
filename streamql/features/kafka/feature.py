"""What external tables on Kafka topics register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamql.feature import Feature, pages

if TYPE_CHECKING:
    from streamql.dialect.grammar import Grammar
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine import StatementType
    from streamql.engine.doctor.check import Check
    from streamql.sources.protocol import SourceType


def _grammar() -> Grammar:
    from streamql.features.kafka.language.grammar import GRAMMAR

    return GRAMMAR


def _statements() -> Sequence[StatementType]:
    from streamql.features.kafka.statements import STATEMENTS

    return STATEMENTS


def _source_types() -> Sequence[SourceType]:
    from streamql.features.kafka.source.source_type import KAFKA

    return (KAFKA,)


def _checks() -> Sequence[Check[Any]]:
    from streamql.features.kafka.checks import ExternalTables

    return (ExternalTables(),)


def _vocabulary() -> Vocabulary:
    from streamql.features.kafka.vocabulary import VOCABULARY

    return VOCABULARY


def _explains(e: Exception) -> Exception | None:
    from streamql.features.kafka.brokers import explained

    return explained(e)


KAFKA = Feature(
    "Kafka",
    grammar=_grammar,
    statements=_statements,
    source_types=_source_types,
    checks=_checks,
    vocabulary=_vocabulary,
    topics=pages("create-storage-connection", "storage-connections", "create-external-table", "external-tables"),
    explains=_explains,
)
