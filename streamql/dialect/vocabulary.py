"""What the console and the shell know of a part of the language, beside the first keywords of its statements. Data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from streamql.registered import registered


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words that completion offers and highlighting knows, and how the names of relations are found."""

    queries: frozenset[str] = frozenset()
    """First words of statements that return rows to show, if Spark has none that begin so."""
    dml: Mapping[str, str] = field(default_factory=dict)
    """First words of statements that write rows, with the names by which the console calls them."""
    keywords: frozenset[str] = frozenset()
    """Words that are shown as keywords, beside the first ones of statements."""
    after: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """The words that follow others."""
    clauses: tuple[str, ...] = ()
    """What may follow somewhere inside a statement of Spark."""
    clauses_of: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """Clauses of statements of Spark, by their first keywords."""
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The types of relations that the first argument of a function can name, in quotes."""
    quoted: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """The types of relations that a string can name, by the words before it."""
    hidden_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns that `SELECT *` does not show, by a column of the same relation that it shows."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """The statements that list relations, by their type. Their rows have a column `name`."""
    unnamed: re.Pattern[str] | None = None
    """Matches the names of tables that no statement names; None: there are none."""


def vocabularies() -> Iterator[Vocabulary]:
    """Yield what the console and the shell know of the words of each feature."""
    return (words for of_feature in registered("vocabulary") if (words := of_feature()) is not None)
