"""The statements that are ours. First a cheap test whether a text is one, then a parse that may fail.

The hard part is what Spark accepts too: a table may be named `stream`, so `DROP TABLE stream` and `DESC stream` are
Spark's while `DROP TABLE STREAM s` is ours. The rule: where Spark's grammar has a meaning for a text, it is Spark's.
It has these exceptions:

- DESC [TABLE] STREAM s, which Spark reads as column s of table stream, and DESC TASK t in the same way;
- CREATE EXTERNAL TABLE … USING KAFKA, since Spark's table could not be the source of a stream;
- CREATE MATERIALIZED VIEW m … AS query, which Spark parses for its pipelines and runs nowhere else;
- REFRESH DYNAMIC TABLE d and REFRESH MATERIALIZED VIEW m, alone and behind EXPLAIN. Spark reads REFRESH with any text as a
  path, and rejects a path with spaces, but not one with comments in their place.

DESC CONNECTION c follows the rule: Spark reads it as column c of table connection, a name that tables do have. Spark
rejects DESC STORAGE CONNECTION c, so that text is ours. In the same way DESC DYNAMIC TABLE is Spark's, as column table of
table dynamic, and DESC DYNAMIC TABLE d is ours. EXPLAIN CREATE MATERIALIZED VIEW, CREATE STREAMING TABLE and CREATE FLOW
are Spark's.
"""

from __future__ import annotations

from streamql.dialect.grammar import Parse, grammars
from streamql.dialect.statements import Statement
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import head, scan, unterminated

_HEAD = 12
"""How many tokens tell which statement a text is."""


def parse(text: str) -> Statement | None:
    """Returns the statement, if it is one of ours; None when it is Spark's.

    Raises StreamqlError (SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY, INVALID_POINT_IN_TIME) for a statement of
    ours that has a fault.
    """
    first = next(scan(text), None)
    if first is None or not any(first.key in grammar.verbs for grammar in grammars()):
        return None
    # ALTER TABLE … SET PROPERTIES is known by its keys; of all others the first words are enough.
    cursor = Cursor(text) if first.key == "ALTER" else Cursor(text, head(text, _HEAD))
    rule = _recognize(first.key, cursor)
    if rule is None:
        return None
    cursor = Cursor(text)
    open_token = unterminated(cursor.tokens)
    if open_token is not None:
        raise cursor.unterminated(open_token)
    statement: Statement = rule(cursor)
    cursor.expect_end()
    return statement


def _recognize(verb: str, cursor: Cursor) -> Parse | None:
    for grammar in grammars():
        cursor.index = 0
        rule = grammar.recognize(cursor) if verb in grammar.verbs else None
        if rule is not None:
            return rule
    return None
