"""What type of statement a text is and where it names relations: enough to know where a splice may go, no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from streamql.dialect.text.tokens import NameParts, Token, name_part


class StatementType(Enum):
    """Types that differ in what reading a stream does."""

    QUERY = "a query"
    DML = "a DML statement"
    VIEW = "a view"
    SCRIPT = "a BEGIN … END script"
    OTHER = "this statement"


@dataclass(frozen=True)
class Shape:
    """`verb` is the index of the token that says what the statement does, behind EXPLAIN, parentheses and CTEs."""

    type: StatementType
    verb: int
    is_explained: bool = False


@dataclass(frozen=True)
class Relation:
    """A name where a relation is read: tokens [first, after); `is_source`: the operand of MERGE's USING."""

    parts: NameParts
    first: int
    after: int
    is_source: bool = False


_VERBS = {
    "SELECT": StatementType.QUERY,
    "VALUES": StatementType.QUERY,
    "TABLE": StatementType.QUERY,
    "MAP": StatementType.QUERY,
    "REDUCE": StatementType.QUERY,
    "FROM": StatementType.QUERY,
    "INSERT": StatementType.DML,
    "MERGE": StatementType.DML,
    "UPDATE": StatementType.DML,
    "DELETE": StatementType.DML,
    "REPLACE": StatementType.DML,
    "BEGIN": StatementType.SCRIPT,
}
EXPLAIN_OPTIONS = ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
_BEFORE_CREATED = ("OR", "REPLACE", "GLOBAL", "TEMP", "TEMPORARY", "EXTERNAL", "MATERIALIZED")


_OPENING, _CLOSING = ("(", "["), (")", "]")


def key_at(tokens: list[Token], index: int) -> str:
    """Returns the key of a token; empty beyond the end."""
    return tokens[index].key if index < len(tokens) else ""


def shape(tokens: list[Token]) -> Shape:
    """Returns the statement's shape; OTHER if no other type fits."""
    index, is_explained = 0, False
    key = key_at(tokens, 0)
    if key == "EXPLAIN":
        is_explained = True
        index = 2 if key_at(tokens, 1) in EXPLAIN_OPTIONS else 1
    elif key in ("DESC", "DESCRIBE") and key_at(tokens, 1) in ("QUERY", "SELECT", "WITH", "FROM", "VALUES"):
        is_explained = True
        index = 2 if key_at(tokens, 1) == "QUERY" else 1
    while key_at(tokens, index) == "(":
        index += 1
    if key_at(tokens, index) == "WITH":
        index = _after_ctes(tokens, index)
    return Shape(_statement_type(tokens, index), index, is_explained)


def _statement_type(tokens: list[Token], verb: int) -> StatementType:
    key = key_at(tokens, verb)
    if key in ("CREATE", "ALTER"):
        index = verb + 1
        while key_at(tokens, index) in _BEFORE_CREATED:
            index += 1
        created = {"VIEW": StatementType.VIEW, "TABLE": StatementType.DML}
        return created.get(key_at(tokens, index), StatementType.OTHER)
    if key == "FROM" and _inserts(tokens, verb):
        return StatementType.DML
    if key_at(tokens, verb + 1) == ":" and key_at(tokens, verb + 2) == "BEGIN":
        return StatementType.SCRIPT
    return _VERBS.get(key, StatementType.OTHER)


def _inserts(tokens: list[Token], start: int) -> bool:
    """Returns whether `FROM …` continues as a multi-insert."""
    return any(
        key_at(tokens, index) == "INSERT" and key_at(tokens, index + 1) in ("INTO", "OVERWRITE")
        for index in outermost(tokens, start)
    )


def _after_ctes(tokens: list[Token], start: int) -> int:
    """Returns the index of the verb behind `WITH name AS (…), …`: the first one that follows a closing parenthesis."""
    verbs = (*_VERBS, "(")
    places = outermost(tokens, start)
    verb = next((i for i in places if key_at(tokens, i - 1) == ")" and tokens[i].key in verbs), start)
    while key_at(tokens, verb) == "(":
        verb += 1
    return verb


def outermost(tokens: list[Token], start: int, end: int | None = None) -> Iterator[int]:
    """Yields the indices from `start` outside all brackets opened from there on; those of the brackets are included."""
    depth = 0
    for index in range(start, len(tokens) if end is None else end):
        key = tokens[index].key
        if key in _CLOSING:
            depth -= 1
            if depth < 0:
                return
        if depth == 0:
            yield index
        if key in _OPENING:
            depth += 1


def chain(tokens: list[Token], first: int) -> tuple[NameParts, int]:
    """Returns the name (parts with dots between them) at `first` and the index after it; no parts where no name stands."""
    parts: list[str] = []
    index = first
    while index < len(tokens):
        part = name_part(tokens[index])
        if part is None:
            # `a.` or `a.*`: the dot belongs to what follows.
            return tuple(parts), index - 1 if parts else index
        parts.append(part)
        index += 1
        if key_at(tokens, index) != ".":
            return tuple(parts), index
        index += 1
    return tuple(parts), index


_NO_RELATION = frozenset(("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE", "LATERAL"))
# fmt: off
_END_OF_FROM = frozenset((
    "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SELECT", "UNION", "INTERSECT", "EXCEPT", "MINUS", "WINDOW",
    "QUALIFY", "SORT", "CLUSTER", "DISTRIBUTE", "OFFSET", "SET", "VALUES", "INSERT", "WHEN", "|>",
))
# fmt: on


def relations(tokens: list[Token], merge: int | None = None) -> Iterator[Relation]:
    """Yields every name in a relation's place: behind FROM, JOIN, a comma or a parenthesis in FROM, and MERGE's USING.

    `merge` is the index of MERGE in a statement that is one. Names of CTEs and of columns in `extract(… FROM c)` are
    among them: what a name means is for others to find out.
    """
    in_from = False
    outer: list[bool] = []
    using = None if merge is None else next((i for i in outermost(tokens, merge) if tokens[i].key == "USING"), None)
    index, size = 0, len(tokens)
    while index < size:
        key = tokens[index].key
        before = tokens[index - 1].key if index else ""
        may_start = (
            before in ("FROM", "JOIN")
            or (in_from and before in (",", "("))
            or (using is not None and index == using + 1)
        )
        if key == "(":
            outer.append(in_from)
            in_from = may_start
        elif key == ")":
            in_from = outer.pop() if outer else False
        elif before == ".":
            pass
        elif key == "FROM":
            in_from = before != "DISTINCT"
        elif key == "JOIN":
            in_from = True
        elif may_start and key not in _NO_RELATION:
            parts, after = chain(tokens, index)
            if parts and key_at(tokens, after) != "(":
                yield Relation(parts, index, after, index - 1 == using)
            index = max(after, index + 1)
            continue
        elif key in _END_OF_FROM:
            in_from = False
        index += 1
