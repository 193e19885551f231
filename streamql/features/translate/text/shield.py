"""Hides streamql's own clauses and names from sqlglot, which does not know them, and puts them back afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamql.dialect.rewrites.dollar_names import COLUMNS, FUNCTIONS
from streamql.dialect.rewrites.rewriter import clause_behind
from streamql.dialect.rewrites.rule import SparkStatement
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, key_at
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import NameParts, TokenType
from streamql.features.translate.text.relations import relations_of

_PLACEHOLDER = re.compile(r"streamql_(?:relation|name)_\d+")


@dataclass(frozen=True)
class Shielded:
    """A statement with placeholders. `hidden`: the text that each stands for; `reads`: the table or stream of each relation."""

    text: str
    hidden: dict[str, str]
    reads: dict[str, NameParts]

    def restore(self, text: str) -> str:
        """Returns the text with what the placeholders stand for."""
        return _PLACEHOLDER.sub(lambda m: self.hidden.get(m.group(), m.group()), text)


def shield(text: str) -> Shielded:
    """Hides clauses of streamql behind relations, such as CHANGES and options of a stream, and names with a $.

    Raises StreamqlError for a clause that streamql refuses.
    """
    cursor = Cursor(text)
    hidden: dict[str, str] = {}
    reads: dict[str, NameParts] = {}
    splices: list[Splice] = []
    for relation in relations_of(cursor):
        found = _clause(cursor, relation)
        if found is None:
            continue
        placeholder = f"streamql_relation_{len(hidden)}"
        hidden[placeholder] = text[found.start : found.end]
        reads[placeholder] = relation.parts
        splices.append(Splice(found.start, found.end, placeholder))
    for index, token in enumerate(cursor.tokens):
        if token.key == "IDENTIFIER" and is_of_variable(cursor, index):
            placeholder = f"streamql_name_{len(hidden)}"
            end = cursor.tokens[cursor.closers[index + 1]].end
            hidden[placeholder] = text[token.start : end]
            splices.append(Splice(token.start, end, placeholder))
        is_function = token.key in FUNCTIONS and key_at(cursor.tokens, index + 1) == "("
        if token.type is TokenType.WORD and (is_function or token.key in COLUMNS):
            placeholder = f"streamql_name_{len(hidden)}"
            hidden[placeholder] = token.text
            splices.append(Splice(token.start, token.end, placeholder))
    return Shielded(apply(text, splices), hidden, reads)


def is_of_variable(cursor: Cursor, index: int) -> bool:
    """Returns whether IDENTIFIER (…) stands at the index, around a variable: Spark has it, and sqlglot reads only a literal in it."""
    return index + 1 in cursor.closers and cursor.tokens[index + 2].type is TokenType.WORD


def _clause(cursor: Cursor, relation: Relation) -> Splice | None:
    """Returns the place of a relation with the clause behind it; None: no clause of streamql's follows."""
    clause = clause_behind(SparkStatement(cursor, lambda _: False, lambda _: ()), relation)
    if clause is None:
        return None
    return Splice(cursor.tokens[relation.first].start, cursor.tokens[clause.after - 1].end, "")
