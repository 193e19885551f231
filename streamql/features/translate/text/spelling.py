"""Words that streamql's parser or sqlglot would misread or drop, spelled so that both read what the source says."""

from __future__ import annotations

from itertools import pairwise

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import key_at, outermost
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import TokenType
from streamql.features.translate.model import System
from streamql.features.translate.text.created import MODIFIERS, take_create
from streamql.features.translate.wording import COPY_GRANTS, PERMISSIONS

_MANAGED = f"WITH MANAGED ACCESS was left out: {PERMISSIONS}"
_BACKLOG = "SYSTEM$STREAM_BACKLOG"
_EVERYTHING = "ALL was left out: DROP TABLE removes the files of a table that has no LOCATION"
_OTHER_BACKLOG = "SYSTEM$STREAM_BACKLOG became stream_backlog, which has columns of its own"
_KEY_WORDS = (("DISABLE", "NOVALIDATE"), ("ENABLE", "VALIDATE"))
"""What says of a key that it is not checked, or checked. RELY may stand behind it, which sqlglot reads."""
_ANEW = "OR ALTER became OR REPLACE: the rows are computed anew from the query"
_INDEX = "INDEX {} was left out: Delta Lake has no indexes"
_TYPES_OF_INDEX = frozenset(("SYNC", "ASYNC", "INVERTED", "NGRAM", "VECTOR", "BLOOMFILTER", "AGGREGATING"))
_TYPES_WITH_ARGUMENTS = frozenset(("ARRAY", "MAP", "TUPLE", "STRUCT", "OBJECT", "NULLABLE", "VECTOR"))
"""What a column with the name `index` may have behind its name, as an index has its name."""
_OR_ALTER = "OR ALTER became IF NOT EXISTS: an existing {} stays as it is, so change it by ALTER {}"


def respelled(text: str) -> tuple[str, tuple[str, ...]]:
    """Returns the statement in words that streamql's parser and sqlglot read alike, and the notes on what differs."""
    cursor = Cursor(text)
    if cursor.at("BEGIN", "NAME"):
        return apply(text, [Splice(cursor.token.end, cursor.token.end, " TRANSACTION")]), ()
    linear = [
        Splice(token.start, token.end, "")
        for index, token in enumerate(cursor.tokens)
        if token.key == "LINEAR" and index + 1 in cursor.closers and key_at(cursor.tokens, index - 1) == "BY"
    ]
    text, notes = _without_or_alter(Cursor(apply(text, linear)) if linear else cursor)
    shorter = _without_managed_access(Cursor(text))
    return (text, notes) if shorter is None else (shorter, (*notes, _MANAGED))


def _without_managed_access(cursor: Cursor) -> str | None:
    """Returns CREATE SCHEMA without the clause; None: it is another statement, or has none."""
    if take_create(cursor) != "SCHEMA":
        return None
    while not cursor.at_end() and not cursor.at("WITH", "MANAGED", "ACCESS"):
        cursor.advance()
    if cursor.at_end():
        return None
    words = Splice(cursor.token.start, cursor.tokens[cursor.index + 2].end, "")
    return apply(cursor.text, [words]).rstrip()


def _without_or_alter(cursor: Cursor) -> tuple[str, tuple[str, ...]]:
    """CREATE OR ALTER keeps the rows of a table, which CREATE OR REPLACE drops."""
    if not cursor.take("CREATE") or not cursor.at("OR", "ALTER"):
        return cursor.text, ()
    words = Splice(cursor.token.start, cursor.tokens[cursor.index + 2].start, "")
    cursor.take("OR", "ALTER")
    while cursor.at_any(MODIFIERS):
        cursor.advance()
    if cursor.at("VIEW"):
        return apply(cursor.text, [Splice(words.start, words.end, "OR REPLACE ")]), ()
    if cursor.at("DYNAMIC", "TABLE") or cursor.at("MATERIALIZED", "VIEW"):
        return apply(cursor.text, [Splice(words.start, words.end, "OR REPLACE ")]), (_ANEW,)
    if not cursor.at_any(("TABLE", "SCHEMA", "DATABASE")):
        return cursor.text, ()
    word = cursor.token
    after = Splice(word.end, word.end, "" if cursor.at(word.key, "IF") else " IF NOT EXISTS")
    return apply(cursor.text, [words, after]), (_OR_ALTER.format(word.key.lower(), word.key),)


# --- what sqlglot does not read


def spelled_for_sqlglot(text: str, system: System) -> tuple[str, tuple[str, ...]]:
    """Returns the statement in words that sqlglot reads, and notes on what was left out or differs."""
    cursor = Cursor(text)
    if system is System.CLICKZETTA:
        splices = _properties(cursor) + _validations(cursor)
        indexes, notes = _indexes(cursor)
        return apply(text, [*splices, *indexes]) if splices or indexes else text, notes
    grants = _grants_of_clone(cursor)
    backlogs = [splice for index in range(2, len(cursor.tokens)) for splice in _backlog(cursor, index)]
    indexes, of_indexes = _indexes(cursor)
    splices = [
        *grants,
        *backlogs,
        *indexes,
        *_validations(cursor),
        *(_of_databend(cursor) if system is System.DATABEND else []),
    ]
    everything = _everything(cursor) if system is System.DATABEND else []
    splices += everything
    notes = (
        *of_indexes,
        *([COPY_GRANTS] if grants else []),
        *([_OTHER_BACKLOG] if backlogs else []),
        *([_EVERYTHING] if everything else []),
    )
    return apply(text, splices).rstrip() if splices else text, notes


def _indexes(cursor: Cursor) -> tuple[list[Splice], tuple[str, ...]]:
    """Returns the places of indexes among the columns of CREATE TABLE, and notes on them."""
    if take_create(cursor) != "TABLE":
        return [], ()
    while not cursor.at_end() and not cursor.at("(") and not cursor.at("AS"):
        cursor.advance()
    tokens, closing = cursor.tokens, cursor.closers.get(cursor.index)
    if closing is None:
        return [], ()
    splices: list[Splice] = []
    notes: list[str] = []
    commas = [i for i in outermost(tokens, cursor.index + 1, closing) if tokens[i].key == ","]
    for start, end in pairwise([*commas, closing]):
        words = [token.key for token in tokens[start + 1 : start + 4]]
        size = words.index("INDEX") if "INDEX" in words else -1
        name = start + 2 + size
        if size < 0 or not set(words[:size]) <= _TYPES_OF_INDEX or tokens[name].key in _TYPES_WITH_ARGUMENTS:
            continue
        if key_at(tokens, name + 1) == "(" and tokens[name + 2].type is not TokenType.NUMBER:
            splices.append(Splice(tokens[start].start, tokens[end].start, ""))
            notes.append(_INDEX.format(tokens[name].text))
    return splices, tuple(notes)


def _properties(cursor: Cursor) -> list[Splice]:
    """Returns ClickZetta's PROPERTIES (…) of CREATE as TBLPROPERTIES (…)."""
    return [
        Splice(token.start, token.end, "TBLPROPERTIES")
        for token, following in pairwise(cursor.tokens)
        if cursor.tokens[0].key == "CREATE" and (token.key, following.key) == ("PROPERTIES", "(")
    ]


def _validations(cursor: Cursor) -> list[Splice]:
    """Takes what a key of CREATE says of its validation out."""
    return [
        Splice(token.start, following.end, "")
        for token, following in pairwise(cursor.tokens)
        if cursor.tokens[0].key == "CREATE" and (token.key, following.key) in _KEY_WORDS
    ]


def _of_databend(cursor: Cursor) -> list[Splice]:
    """Returns UPDATE * as UPDATE SET *, and SAMPLE ROW as TABLESAMPLE ROW, and takes NULL out of casts."""
    merges = [
        Splice(token.start, token.end, "UPDATE SET")
        for token, following in pairwise(cursor.tokens)
        if (token.key, following.key) == ("UPDATE", "*")
    ]
    samples = [
        Splice(token.start, token.end, "TABLESAMPLE")
        for token, following in pairwise(cursor.tokens)
        if token.key == "SAMPLE" and following.key in ("ROW", "BLOCK")
    ]
    return [*merges, *samples, *_nullable_casts(cursor)]


def _everything(cursor: Cursor) -> list[Splice]:
    """Returns the place of ALL behind Databend's DROP TABLE name."""
    tokens = cursor.tokens
    is_drop = (key_at(tokens, 0), key_at(tokens, 1)) == ("DROP", "TABLE") and len(tokens) > 4
    return (
        [Splice(tokens[-2].start, tokens[-2].end, "")] if is_drop and key_at(tokens, len(tokens) - 2) == "ALL" else []
    )


def _grants_of_clone(cursor: Cursor) -> list[Splice]:
    tokens = cursor.tokens
    if tokens[0].key != "CREATE" or "CLONE" not in [token.key for token in tokens]:
        return []
    return [
        Splice(token.start, following.end, "")
        for token, following in pairwise(tokens)
        if (token.key, following.key) == ("COPY", "GRANTS")
    ]


def _nullable_casts(cursor: Cursor) -> list[Splice]:
    """Returns the places of NULL and NOT NULL behind the type in Databend's CAST (x AS type NULL)."""
    splices: list[Splice] = []
    for opening, closing in cursor.closers.items():
        before, last = cursor.tokens[opening - 1], cursor.tokens[closing - 1]
        if opening == 0 or before.key not in ("CAST", "TRY_CAST") or last.key != "NULL" or closing - opening < 5:
            continue
        end_of_type = cursor.tokens[closing - (3 if cursor.tokens[closing - 2].key == "NOT" else 2)].end
        splices.append(Splice(end_of_type, last.end, ""))
    return splices


def _backlog(cursor: Cursor, index: int) -> list[Splice]:
    """`TABLE(SYSTEM$STREAM_BACKLOG('s'))` as `stream_backlog('s')`; `index`: of the function's name."""
    tokens, closing = cursor.tokens, cursor.closers.get(index - 1)
    if tokens[index].key != _BACKLOG or tokens[index - 2].key != "TABLE" or closing is None:
        return []
    return [
        Splice(tokens[index - 2].start, tokens[index].end, "stream_backlog"),
        Splice(tokens[closing].start, tokens[closing].end, ""),
    ]
