"""What AUTO CDC INTO registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamql.feature import Feature, pages

if TYPE_CHECKING:
    from streamql.dialect.grammar import Grammar
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine import StatementType


def _grammar() -> Grammar:
    from streamql.features.autocdc.language.grammar import GRAMMAR

    return GRAMMAR


def _statements() -> Sequence[StatementType]:
    from streamql.features.autocdc.statements import STATEMENTS

    return STATEMENTS


def _vocabulary() -> Vocabulary:
    from streamql.features.autocdc.vocabulary import VOCABULARY

    return VOCABULARY


def _explains(e: Exception) -> Exception | None:
    from streamql.features.autocdc.failures import explained

    return explained(e)


AUTO_CDC = Feature(
    "AUTO CDC",
    grammar=_grammar,
    statements=_statements,
    vocabulary=_vocabulary,
    topics=pages("auto-cdc"),
    explains=_explains,
)
