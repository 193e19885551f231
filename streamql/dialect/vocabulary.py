"""Words that a part of the language adds to statements of Spark and to its own, beside their first keywords. Data, for completion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What completion offers, and highlighting knows."""

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
