"""Which actions of ALTER STREAM and clauses of CREATE STREAM are about expectations."""

from __future__ import annotations

from streamql.dialect.grammar import Grammar, Parse
from streamql.dialect.text.cursor import Cursor
from streamql.features.expectations.language.clause import parse_add, parse_clause, parse_drop


def _recognize(_: Cursor) -> Parse | None:
    """Returns None: there are no statements of expectations alone."""
    return None


GRAMMAR = Grammar(
    frozenset(),
    _recognize,
    stream_actions={"ADD": parse_add, "DROP": parse_drop},
    stream_clauses={"EXPECTATION": parse_clause, "CONSTRAINT": parse_clause},
)
