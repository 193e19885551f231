"""Rewrites statements that stay Spark's, by the rules of all features.

The order of what happens:

1. Clauses, relation by relation in the order of the text. At a relation the first rule of the list that finds its clause has it.
2. What rules find in the whole statement, in the order of the list. So a mistake in a clause is shown before the catalog is asked.
3. If Spark's parser rejects the statement, or what the first two have made of it: the rules of rejected statements, in that order.

No rule sees what another one has done. All splices are of the text as written, and are made at once by their places. If one lies inside the
piece of an earlier one, it is dropped. So the order of the list is only that of mistakes and warnings.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamql.dialect.rewrites.rule import (
    Clause,
    ClauseRule,
    ColumnsOf,
    IsStream,
    RewriteRule,
    SparkStatement,
    StatementRule,
    rewrite_rules,
)
from streamql.dialect.statements import Rewrite
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, StatementType
from streamql.dialect.text.splices import apply


def rewrite(text: str, is_stream: IsStream, columns_of: ColumnsOf) -> Rewrite | None:
    """Returns the statement with its splices, or None when nothing is to be done.

    `is_stream` and `columns_of`: see `SparkStatement`. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_ARGUMENT,
    INVALID_POINT_IN_TIME, and whatever the two callbacks raise.
    """
    rules = _asked(text, is_of_rejected=False)
    if not rules:
        return None
    statement = SparkStatement(Cursor(text), is_stream, columns_of)
    if not statement.is_terminated:
        return None
    behind = ((relation.parts, clause_behind(statement, relation, rules)) for relation in statement.relations)
    clauses = [(parts, clause) for parts, clause in behind if clause is not None]
    edits = [rule.find(statement) for rule in rules if isinstance(rule, StatementRule)]
    splices = [splice for _, clause in clauses for splice in clause.splices]
    splices += [splice for edit in edits for splice in edit.splices]
    if not splices:
        return None
    is_query = statement.shape.type is StatementType.QUERY and not statement.shape.is_explained
    consumed = tuple(dict.fromkeys(parts for parts, clause in clauses if clause.consumes)) if is_query else ()
    return Rewrite(apply(text, splices), bool(consumed), tuple(w for edit in edits for w in edit.warnings), consumed)


def rewrite_rejected(text: str, columns_of: ColumnsOf) -> str | None:
    """Returns a statement that Spark's parser rejected as Spark can parse it; None: no rewrite applies.

    Raises SYNTAX_ERROR if a MERGE gives more or fewer values than the target has columns.
    """
    rules = _asked(text, is_of_rejected=True)
    if not rules:
        return None
    statement = SparkStatement(Cursor(text), lambda _: False, columns_of)
    if not statement.is_terminated:
        return None
    splices = [splice for rule in rules if isinstance(rule, StatementRule) for splice in rule.find(statement).splices]
    return apply(text, splices) if splices else None


def clause_behind(
    statement: SparkStatement, relation: Relation, rules: Iterable[RewriteRule] | None = None
) -> Clause | None:
    """Returns the clause of ours behind a relation; None: there is none. `rules`: those to ask; None: all."""
    for rule in rewrite_rules() if rules is None else rules:
        clause = rule.find(statement, relation) if isinstance(rule, ClauseRule) else None
        if clause is not None:
            return clause
    return None


def _asked(text: str, *, is_of_rejected: bool) -> list[RewriteRule]:
    """Returns the rules for which the text has words, in the order of the list."""
    return [
        rule
        for rule in rewrite_rules()
        if (isinstance(rule, StatementRule) and rule.is_of_rejected) == is_of_rejected and rule.words.search(text)
    ]
