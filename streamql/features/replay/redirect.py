"""The text of a statement, with other relations in the place of its streams, and another table in the place of its target. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamql.dialect.rewrites.changes import has_alias
from streamql.dialect.rewrites.rewriter import clause_behind
from streamql.dialect.rewrites.rule import SparkStatement
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Relation, StatementType, chain, key_at, outermost
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import NameParts
from streamql.errors import StreamqlError
from streamql.names import quote

_FORMS = "INSERT INTO, INSERT OVERWRITE, MERGE INTO, UPDATE, DELETE and CREATE TABLE … AS"


def redirected(
    text: str, relation_of: Callable[[NameParts], str | None], is_target: Callable[[NameParts], bool], shadow: str
) -> str:
    """Returns the statement that reads other relations than its streams, and writes into `shadow`, SQL for the name of a table.

    `relation_of`: SQL for the relation that is read in the place of a name; None: the name is not a stream's. `is_target`: whether a name
    is that of the statement's target. If the statement reads its target, it then reads `shadow`. Raises UNSUPPORTED_STATEMENT for a
    statement whose target is not found, or that reads no stream by its name.
    """
    statement = SparkStatement(Cursor(text), lambda _: False, lambda _: ())
    if not statement.is_terminated or statement.shape.type is not StatementType.DML or statement.shape.is_explained:
        raise _refused(f"it is not one of {_FORMS}")
    splices = list(_of_target(statement, is_target, shadow))
    streams = 0
    for relation in statement.relations:
        other = relation_of(relation.parts)
        if other is not None:
            splices.append(_of_stream(statement, relation, other))
            streams += 1
        elif is_target(relation.parts):
            splices.append(_named(statement.cursor, relation.first, relation.after, shadow, relation.parts))
    if not streams:
        raise _refused("its text names no stream of this consumption: it may read one through a view")
    return apply(text, splices)


def _of_target(statement: SparkStatement, is_target: Callable[[NameParts], bool], shadow: str) -> Iterator[Splice]:
    """Yields the splice of the place where the statement names its target. Raises UNSUPPORTED_STATEMENT if another name is there."""
    tokens = statement.cursor.tokens
    if sum(key_at(tokens, i) == "INTO" for i in outermost(tokens, 0)) > 1:
        raise _refused("it writes into several tables")
    first, takes_alias = _place(statement)
    parts, after = chain(tokens, first)
    if not parts or not is_target(parts):
        found = ".".join(parts) or "nothing"
        raise _refused(f"it names {found} as its target, which is another table here: name the schema by --database")
    if takes_alias:
        yield _named(statement.cursor, first, after, shadow, parts)
    else:
        yield Splice(tokens[first].start, tokens[after - 1].end, shadow)


def _place(statement: SparkStatement) -> tuple[int, bool]:
    """Returns the index of the first token of the target's name, and whether an alias may follow it."""
    tokens, verb = statement.cursor.tokens, statement.shape.verb
    key = key_at(tokens, verb)
    reader = Cursor(statement.cursor.text, tokens, verb + 1)
    if key == "INSERT":
        reader.advance()  # INTO or OVERWRITE
        reader.take("TABLE")
        return reader.index, False
    if key == "MERGE":
        reader.take("WITH", "SCHEMA", "EVOLUTION")
        reader.take("INTO")
        return reader.index, True
    if key in ("UPDATE", "DELETE"):
        reader.take("FROM")
        return reader.index, True
    if key == "CREATE":
        reader.take("OR", "REPLACE")
        reader.take("TABLE")
        reader.take("IF", "NOT", "EXISTS")
        return reader.index, False
    raise _refused(f"it is not one of {_FORMS}")


def _of_stream(statement: SparkStatement, relation: Relation, other: str) -> Splice:
    """Returns the splice of a stream's name, and of the options behind it."""
    tokens = statement.cursor.tokens
    end = relation.after
    if key_at(tokens, end) == "WITH" and key_at(tokens, end + 1) == "(":
        end = statement.cursor.closers.get(end + 1, end + 1) + 1
    elif clause_behind(statement, relation) is not None:
        raise _refused(f"it reads {'.'.join(relation.parts)} with a clause of its own")
    piece = f"(SELECT * FROM {other})" if relation.is_source else other
    return _named(statement.cursor, relation.first, end, piece, relation.parts)


def _named(cursor: Cursor, first: int, after: int, piece: str, parts: NameParts) -> Splice:
    """Returns the splice that puts `piece` in the place of the tokens of a name, with the name as its alias if it has none."""
    is_named = has_alias(Cursor(cursor.text, cursor.tokens, after)) and key_at(cursor.tokens, after) != "SET"
    alias = "" if is_named else f" AS {quote(parts[-1])}"
    return Splice(cursor.tokens[first].start, cursor.tokens[after - 1].end, piece + alias)


def _refused(why: str) -> StreamqlError:
    return StreamqlError(
        "UNSUPPORTED_STATEMENT",
        f"the statement cannot be run into another table: {why}",
        hint="give the statement to run by --statement, or write it with stream_consumption('stream', n) by hand",
    )
