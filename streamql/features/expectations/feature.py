"""What expectations register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamql.feature import Feature, pages

if TYPE_CHECKING:
    from streamql.catalog.counts import Ended
    from streamql.dialect.grammar import Grammar
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine.doctor.check import Check
    from streamql.engine.functions import SqlFunction
    from streamql.engine.measures import Measure
    from streamql.terms import TermType


def _grammar() -> Grammar:
    from streamql.features.expectations.language.grammar import GRAMMAR

    return GRAMMAR


def _terms() -> Sequence[TermType]:
    from streamql.features.expectations.terms import term_types

    return term_types()


def _functions() -> Mapping[str, SqlFunction]:
    from streamql.features.expectations.function import NAME, stream_violations

    return {NAME: stream_violations}


def _checks() -> Sequence[Check[Any]]:
    from streamql.features.expectations.checks import Violations

    return (Violations(),)


def _counts(before: Mapping[str, int], ended: Ended) -> Mapping[str, int]:
    from streamql.features.expectations.measures import counts

    return counts(before, ended)


def _measures() -> Sequence[Measure]:
    from streamql.features.expectations.measures import MEASURE

    return (MEASURE,)


def _vocabulary() -> Vocabulary:
    from streamql.features.expectations.vocabulary import VOCABULARY

    return VOCABULARY


def _explains(e: Exception) -> Exception | None:
    from streamql.features.expectations.failures import explained

    return explained(e)


EXPECTATIONS = Feature(
    "expectations",
    grammar=_grammar,
    terms=_terms,
    functions=_functions,
    checks=_checks,
    counts=_counts,
    measures=_measures,
    vocabulary=_vocabulary,
    topics=pages("expectations"),
    explains=_explains,
)
