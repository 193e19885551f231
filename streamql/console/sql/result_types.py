"""What a statement gives back: the rows of a query, the counts of a DML statement, or nothing a reader of rows should see.

Spark answers `num_affected_rows` and the like as rows of a result. A pipe that reads rows must not find them there, so
the statement's own keywords tell it, behind comments, CTEs and parentheses; nothing is executed.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from streamql.dialect.text.tokens import Token, scan
from streamql.dialect.vocabulary import vocabularies


class ResultType(Enum):
    """What becomes of a statement's result."""

    QUERY = "query"
    """Rows to show."""
    DML = "dml"
    """Changes rows of a table; the result, if there is one, is counts."""
    COMMAND = "command"
    """All else: DDL, settings, maintenance; the result, if there is one, is a report."""
    SCRIPT = "script"
    """BEGIN … END, EXECUTE IMMEDIATE and EXECUTE TASK: what comes back is known when it comes back (see `result_type_of_columns`)."""


class Shape(NamedTuple):
    """What a statement gives back, and the keyword that says so: MERGE for `WITH s AS (…) MERGE INTO …`."""

    result_type: ResultType
    verb: str


_QUERIES = frozenset(
    ("SELECT", "VALUES", "TABLE", "MAP", "REDUCE", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "LIST", "CALL")
)
_QUERY_STARTS = frozenset(("SELECT", "VALUES", "TABLE", "FROM", "WITH", "MAP", "REDUCE", "("))
_BRIEF = frozenset(
    ("SHOW", "LIST", "DESC", "DESCRIBE", "EXPLAIN", "USE", "SET", "RESET", "CREATE", "ALTER", "DROP", "COMMENT")
)
"""Verbs of statements that read no rows, unless a query stands in them."""
_DML = frozenset(("INSERT", "MERGE", "UPDATE", "DELETE", "COPY"))
_SET_COMMANDS = frozenset(("TIME", "VAR", "VARIABLE", "CATALOG", "ROLE", "PATH"))
_PLAIN_AFTER_BEGIN = frozenset(("", "TRANSACTION", "TRAN", "WORK"))
_OPEN, _CLOSE = "(", ")"


def shape_of(text: str) -> Shape:
    """Returns the shape of one statement, with or without a closing semicolon. Never raises: an unknown statement is a COMMAND."""
    tokens = [token for token in scan(text) if token.key != ";"]
    return _shape(tokens, 0)


def result_type_of(text: str) -> ResultType:
    """Return what one statement gives back."""
    return shape_of(text).result_type


def is_brief(text: str) -> bool:
    """Returns whether a statement takes a second at most, because it reads no rows: SELECT without FROM, SHOW, most DDL."""
    tokens = [token for token in scan(text) if token.key != ";"]
    keys = {token.key for token in tokens}
    verb = _shape(tokens, 0).verb
    return (verb == "SELECT" and "FROM" not in keys) or (verb in _BRIEF and not keys & {"SELECT", "CLONE", "REFRESH"})


def result_type_of_columns(names: list[str]) -> ResultType:
    """Return what a script gave back: the counts of Delta's DML, or a query's rows, or nothing."""
    if not names:
        return ResultType.COMMAND
    return (
        ResultType.DML
        if all(name.startswith("num_") and name.endswith("_rows") for name in names)
        else ResultType.QUERY
    )


def is_plain_text(text: str) -> bool:
    """Returns whether the result is a text to read rather than a table: EXPLAIN's plan, SHOW CREATE's statement."""
    keys = [token.key for _, token in zip(range(2), scan(text), strict=False)]
    return keys[:1] == ["EXPLAIN"] or keys == ["SHOW", "CREATE"]


def _shape(tokens: list[Token], index: int) -> Shape:
    while _key(tokens, index) == _OPEN:
        index += 1
    verb = _key(tokens, index)
    if verb == "WITH":
        return _shape(tokens, _after_ctes(tokens, index + 1))
    if verb == "FROM":
        return Shape(ResultType.DML, "INSERT") if _inserts(tokens, index + 1) else Shape(ResultType.QUERY, "FROM")
    if verb in _QUERIES or any(verb in words.queries for words in vocabularies()):
        return Shape(ResultType.QUERY, verb)
    if verb in _DML:
        return Shape(ResultType.DML, verb)
    named = next((words.dml[verb] for words in vocabularies() if verb in words.dml), None)
    if named is not None:
        return Shape(ResultType.DML, named)
    if verb == "SET":
        return Shape(ResultType.QUERY if _set_shows(tokens, index + 1) else ResultType.COMMAND, verb)
    if verb == "VACUUM":
        dry = any(t.key == "DRY" and _key(tokens, i + 1) == "RUN" for i, t in enumerate(tokens))
        return Shape(ResultType.QUERY if dry else ResultType.COMMAND, verb)
    if _is_script(tokens, index):
        return Shape(ResultType.SCRIPT, verb)
    return Shape(ResultType.COMMAND, verb)


def _key(tokens: list[Token], index: int) -> str:
    return tokens[index].key if index < len(tokens) else ""


def _is_script(tokens: list[Token], index: int) -> bool:
    following = _key(tokens, index + 1)
    if _key(tokens, index) == "EXECUTE":
        return True
    if following == ":":  # a label
        return _key(tokens, index + 2) == "BEGIN"
    return _key(tokens, index) == "BEGIN" and following not in _PLAIN_AFTER_BEGIN


def _after_ctes(tokens: list[Token], index: int) -> int:
    """Returns where the statement behind `WITH [RECURSIVE] name [(columns)] [MAX RECURSION LEVEL n] [AS] (…) [, …]` starts.

    A CTE may be called `insert` or `recursive`: only its place says that a word is a name.
    """
    if _key(tokens, index) == "RECURSIVE" and _key(tokens, index + 1) not in ("AS", _OPEN):
        index += 1
    while True:
        index += 1  # the name
        if _key(tokens, index) == _OPEN and _key(tokens, index + 1) not in _QUERY_STARTS:
            index = _after_group(tokens, index)
        if _key(tokens, index) == "MAX":
            index += 4
        if _key(tokens, index) == "AS":
            index += 1
        if _key(tokens, index) == _OPEN:
            index = _after_group(tokens, index)
        if _key(tokens, index) != ",":
            return index
        index += 1


def _after_group(tokens: list[Token], index: int) -> int:
    """Returns the index after the parenthesis that closes the one at `index`."""
    depth = 0
    while index < len(tokens):
        depth += (_key(tokens, index) == _OPEN) - (_key(tokens, index) == _CLOSE)
        index += 1
        if depth == 0:
            break
    return index


def _inserts(tokens: list[Token], index: int) -> bool:
    """Returns whether INSERT INTO | OVERWRITE follows a FROM clause outside parentheses: `FROM t INSERT INTO a … INSERT INTO b …`."""
    while index < len(tokens):
        key = _key(tokens, index)
        if key == _OPEN:
            index = _after_group(tokens, index)
            continue
        if key == "INSERT" and _key(tokens, index + 1) in ("INTO", "OVERWRITE"):
            return True
        index += 1
    return False


def _set_shows(tokens: list[Token], index: int) -> bool:
    """SET, SET -v and SET key show settings; SET key = value and SET TIME ZONE change one."""
    if any("=" in token.key for token in tokens[index:]):
        return False
    return not (_key(tokens, index) in _SET_COMMANDS and index + 1 < len(tokens))
