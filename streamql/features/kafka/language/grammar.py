"""Which texts are statements about storage connections and external tables; and the errors for those that are nearly such."""

from __future__ import annotations

from streamql.dialect.grammar import Grammar, Parse
from streamql.dialect.text.cursor import Cursor
from streamql.errors import StreamqlError
from streamql.features.kafka.language.connections import (
    parse_create_connection,
    parse_describe_connection,
    parse_drop_connection,
    parse_show_connections,
)
from streamql.features.kafka.language.phrases import CONNECTION, PHRASES, TABLE
from streamql.features.kafka.language.tables import (
    clauses,
    is_kafka_table,
    parse_create_external,
    parse_describe_external,
    parse_drop_external,
    parse_show_create_external,
    parse_show_external,
    uses_kafka,
)


def _recognize(cursor: Cursor) -> Parse | None:
    verb = cursor.advance().key
    if verb == "CREATE":
        cursor.take("OR", "REPLACE")
        if cursor.at(*CONNECTION):
            return parse_create_connection
        return parse_create_external if cursor.at(*TABLE) and is_kafka_table(cursor.text) else None
    if verb == "DROP":
        if cursor.at("CONNECTION") or cursor.at(*CONNECTION):
            return parse_drop_connection
        return parse_drop_external if cursor.at(*TABLE) else None
    if verb == "SHOW":
        return _shown(cursor)
    rule = _DESCRIBED.get((cursor.key(), cursor.key(1)))
    cursor.index += 2
    # Without a name it is a column of a table that is named storage, or external.
    return rule if rule is not None and cursor.at_name() and not cursor.at("AS", "JSON") else None


_DESCRIBED: dict[tuple[str, str], Parse] = {CONNECTION: parse_describe_connection, TABLE: parse_describe_external}


def _shown(cursor: Cursor) -> Parse | None:
    if cursor.at("CREATE", *TABLE):
        return parse_show_create_external
    if cursor.at("CONNECTIONS") or cursor.at("STORAGE", "CONNECTIONS"):
        return parse_show_connections
    return parse_show_external if cursor.at("EXTERNAL", "TABLES") else None


# --- what is nearly one of them


def _altered(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for ALTER of what is replaced as a whole."""
    for words, what in ((CONNECTION, "a connection"), (TABLE, "a table")):
        if cursor.at("ALTER", *words):
            hint = f"CREATE OR REPLACE {' '.join(words)} replaces {what}"
            return cursor.error(f"streamql has no ALTER {' '.join(words)}", hint=hint, code="UNSUPPORTED_CLAUSE")
    return None


def _keyword_missing(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for an external table on Kafka, or a connection, with a keyword left out or out of its place."""
    after = 3 if cursor.at("CREATE", "OR", "REPLACE") else 1
    if cursor.key() != "CREATE":
        return None
    verb = " ".join(token.key for token in cursor.tokens[:after])
    words = [cursor.key(after), cursor.key(after + 1)]
    if words[0] == "CONNECTION":
        return cursor.error(f"{verb} CONNECTION is not a statement", hint=f"did you mean {verb} STORAGE CONNECTION?")
    is_external = words == ["EXTERNAL", "TABLE"]
    name = after + (2 if is_external else 1)
    named = (index for index in clauses(cursor.tokens, name) if index > name)
    connection = next((cursor.tokens[index] for index in named if cursor.key(index) == "CONNECTION"), None)
    if connection is not None and is_external and not uses_kafka(cursor.tokens, name):
        hint = "write USING KAFKA OPTIONS (…) CONNECTION c"
        return cursor.error("an external table with a CONNECTION is USING KAFKA", hint=hint, token=connection)
    if connection is not None and words[0] == "TABLE" and uses_kafka(cursor.tokens, name):
        hint = f"did you mean {verb} EXTERNAL TABLE?"
        return cursor.error("a table with a CONNECTION is an external table", hint=hint, token=cursor.tokens[after])
    return None


GRAMMAR = Grammar(
    frozenset(("CREATE", "DROP", "SHOW", "DESC", "DESCRIBE")),
    _recognize,
    PHRASES,
    (_altered, _keyword_missing),
    sources=(TABLE,),
)
