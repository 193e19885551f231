"""All words that completion offers and highlighting knows: Spark's, and those of the records of features."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import TypeVar

from streamql.cli.shell.completion import vocabulary
from streamql.dialect.grammar import Phrase, grammars
from streamql.dialect.vocabulary import vocabularies
from streamql.feature import Feature, features
from streamql.shared import FUNCTIONS, text_of

R = TypeVar("R")
_SHORT = "DESC"
"""Another spelling of DESCRIBE, which alone is offered at the start."""


def _of_features(work: Callable[[], R]) -> Callable[[], R]:
    """Keeps what a function returns, while the features are the same."""

    @cache
    def kept(_: Sequence[Feature]) -> R:
        return work()

    return wraps(work)(lambda: kept(tuple(features())))


@_of_features
def phrases() -> Mapping[tuple[str, ...], Phrase]:
    """Returns the first keywords of the statements of features."""
    return {phrase.words: phrase for grammar in grammars() for phrase in grammar.phrases}


@_of_features
def keywords() -> frozenset[str]:
    """Returns the words that are shown as keywords, wherever they stand."""
    first = frozenset(word for words in phrases() for word in words)
    return vocabulary.KEYWORDS.union(first, *(words.keywords for words in vocabularies()))


@_of_features
def never_names() -> frozenset[str]:
    """Returns the words that a name can only be in backquotes, or that read badly as a name."""
    return vocabulary.NEVER_NAMES | {words[-1] for words, phrase in phrases().items() if phrase.follows.name}


@_of_features
def statements() -> tuple[str, ...]:
    """Returns what a statement may begin with."""
    return _among(vocabulary.STATEMENTS, (" ".join(words) for words in _offered() if words[0] != _SHORT))


@_of_features
def clauses() -> tuple[str, ...]:
    """Returns what may follow somewhere inside a statement of Spark."""
    return _among(vocabulary.CLAUSES, (clause for words in vocabularies() for clause in words.clauses))


@_of_features
def after() -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Returns the words that follow others."""
    return vocabulary.AFTER | {key: following for words in vocabularies() for key, following in words.after.items()}


@_of_features
def functions() -> Mapping[str, tuple[str, ...]]:
    """Returns the functions of features, and the types of relations that their first argument can name."""
    return {name: types for words in vocabularies() for name, types in words.functions.items()}


@_of_features
def table_functions() -> tuple[str, ...]:
    """Returns the functions of features that may stand in FROM."""
    returned = json.loads(text_of(FUNCTIONS))
    return tuple(name for name in functions() if returned.get(name) == "relation")


@_of_features
def quoted() -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Returns the types of relations that a string can name, by the words before it."""
    in_clauses = {key: types for words in vocabularies() for key, types in words.quoted.items()}
    return in_clauses | {(name.upper(), "("): types for name, types in functions().items()}


def following(keys: tuple[str, ...], behind: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Returns what continues the first keywords of a statement. `behind`: what Spark has there; None: nothing."""
    size = len(keys)
    rest = (words[size:] for words in _offered() if len(words) > size and words[:size] == keys)
    return _among(behind or (), (" ".join(words) for words in rest if words[0] != "OR"))  # OR REPLACE is among Spark's


def clauses_of(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the clauses of a statement of Spark, by all its keywords so far."""
    for words, known in vocabulary.CLAUSES_OF.items():
        if keys[: len(words)] == words:
            return _among(known, (clause for one in vocabularies() for clause in one.clauses_of.get(words, ())))
    return ()


def phrase_of(keys: Sequence[str]) -> Phrase | None:
    """Returns the longest phrase that a statement begins with; None: it is not a statement of a feature, or not yet known as one."""
    longest = max(map(len, phrases()))
    begun = (phrases().get(tuple(keys[:size])) for size in range(min(len(keys), longest), 0, -1))
    return next((phrase for phrase in begun if phrase is not None), None)


def hidden_columns(columns: Sequence[str]) -> list[str]:
    """Returns the columns that a relation has beside those that `SELECT *` shows."""
    found = (names for one in vocabularies() for column, names in one.hidden_columns.items() if column in columns)
    return [name for names in found for name in names]


def _offered() -> list[tuple[str, ...]]:
    return [words for words, phrase in phrases().items() if phrase.is_offered]


def _among(of_spark: Sequence[str], ours: Iterable[str]) -> tuple[str, ...]:
    """Returns the words of Spark with ours at their place among them."""
    at = of_spark.index(vocabulary.OURS) if vocabulary.OURS in of_spark else len(of_spark)
    return (*of_spark[:at], *dict.fromkeys(ours), *of_spark[at + 1 :])
