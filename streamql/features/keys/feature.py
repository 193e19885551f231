"""What keys as identity register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamql.feature import Feature, pages

if TYPE_CHECKING:
    from streamql.dialect.grammar import Grammar
    from streamql.dialect.rewrites.rule import RewriteRule
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine import StatementType
    from streamql.engine.doctor.check import Check
    from streamql.sources.protocol import SourceType


def _grammar() -> Grammar:
    from streamql.features.keys.language.grammar import GRAMMAR

    return GRAMMAR


def _rewrites() -> Sequence[RewriteRule]:
    from streamql.features.keys.language.created import CREATED_KEY

    return (CREATED_KEY,)


def _statements() -> Sequence[StatementType]:
    from streamql.features.keys.statements import STATEMENTS

    return STATEMENTS


def _source_types() -> Sequence[SourceType]:
    from streamql.features.keys.source.keyed import KEYED

    return (KEYED,)


def _new_table(name: str, properties: Mapping[str, str], fields: Sequence[Mapping[str, Any]]) -> None:
    from streamql.features.keys.declared import check_new

    check_new(name, properties, fields)


def _checks() -> Sequence[Check[Any]]:
    from streamql.features.keys.checks import UniqueKeys

    return (UniqueKeys(),)


def _vocabulary() -> Vocabulary:
    from streamql.features.keys.vocabulary import VOCABULARY

    return VOCABULARY


def _explains(e: Exception) -> Exception | None:
    from streamql.features.keys.failures import explained

    return explained(e)


KEYS = Feature(
    "keys",
    grammar=_grammar,
    rewrites=_rewrites,
    statements=_statements,
    source_types=_source_types,
    new_table=_new_table,
    checks=_checks,
    vocabulary=_vocabulary,
    topics=pages("primary-key"),
    explains=_explains,
)
