"""The error for a statement that Spark rejected, if it resembles one of ours with a mistake in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from streamql.dialect.dynamic.words import LISTS, TYPES
from streamql.dialect.external.tables import clauses, uses_kafka
from streamql.dialect.parser import AFTER_TABLE_NAME, parse
from streamql.dialect.rewrites.rewriter import COLUMNS, FUNCTIONS
from streamql.dialect.tasks import task_refused
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import EXPLAIN_OPTIONS, key_at
from streamql.dialect.text.spelling import distance, nearest
from streamql.dialect.text.tokens import Token, TokenType, name_part
from streamql.errors import StreamqlError

_VERBS = ("CREATE", "DROP", "ALTER", "SHOW", "DESC", "DESCRIBE")
_MISTAKES_MAX = 2
_WORDS_MAX = 7  # CREATE OR REPLACE TABLE STREAM, CREATE TABLE IF NOT EXISTS STREAM
# Words between the verb and STREAM that leave no doubt about the statement.
_BETWEEN = frozenset(("OR", "REPLACE", "TABLE", "FULL", "TERSE", "CREATE", "IF", "NOT", "EXISTS", "TEMPORARY", "TEMP"))

_NOT_HERE: tuple[tuple[frozenset[str], tuple[str, ...], str, str], ...] = (
    (
        frozenset(("ALTER",)),
        ("STORAGE", "CONNECTION"),
        "ALTER STORAGE CONNECTION",
        "CREATE OR REPLACE STORAGE CONNECTION replaces a connection",
    ),
    (
        frozenset(("ALTER",)),
        ("EXTERNAL", "TABLE"),
        "ALTER EXTERNAL TABLE",
        "CREATE OR REPLACE EXTERNAL TABLE replaces a table",
    ),
)

_EXTERNAL = ("EXTERNAL", "TABLE")
_CONNECTION = ("STORAGE", "CONNECTION")
_DYNAMIC = (
    ("CREATE",),
    ("CREATE", "OR", "REPLACE"),
    ("SHOW", "CREATE"),
    ("EXPLAIN", "REFRESH"),
    *((verb,) for verb in ("DROP", "ALTER", "DESC", "DESCRIBE", "REFRESH", "VERIFY")),
)
_PHRASES: tuple[tuple[str, ...], ...] = (
    *(
        (*verb, *_CONNECTION)
        for verb in (("CREATE",), ("CREATE", "OR", "REPLACE"), ("DROP",), ("DESC",), ("DESCRIBE",))
    ),
    ("DROP", "CONNECTION"),
    ("SHOW", "STORAGE", "CONNECTIONS"),
    ("SHOW", "CONNECTIONS"),
    *((*verb, *_EXTERNAL) for verb in (("DROP",), ("DESC",), ("DESCRIBE",), ("SHOW", "CREATE"))),
    ("SHOW", "EXTERNAL", "TABLES"),
    *(("SHOW", *words, "REFRESH", "HISTORY") for words in TYPES),
    *(("SHOW", *words) for words in LISTS),
    *((*verb, *words) for verb in _DYNAMIC for words in TYPES),
)
_MIXED = {("DYNAMIC", "VIEW"): TYPES[0], ("MATERIALIZED", "TABLE"): TYPES[1]}
"""Words of one type with the other's, and the type that they are nearest to."""
_KAFKA_PHRASES = (("CREATE", *_EXTERNAL), ("CREATE", "OR", "REPLACE", *_EXTERNAL))
"""Ours only if USING KAFKA follows."""


def explain_rejected(text: str) -> StreamqlError | None:
    """Returns the error to show for a statement that Spark rejected, if there is a better one than Spark's; else None.

    SYNTAX_ERROR with "did you mean CREATE STREAM?" for one that is within 2 mistakes per word of a statement of ours;
    UNSUPPORTED_CLAUSE for tasks of other systems, for ALTER of what is replaced as a whole, and for EXPLAIN of a statement
    of ours.
    """
    cursor = Cursor(text)
    if cursor.at_end() or cursor.token.type is not TokenType.WORD:
        return None
    return (
        task_refused(text)
        or _explained(cursor)
        or _not_here(cursor)
        or _misspelt(cursor)
        or _misspelt_phrase(cursor)
        or _mixed_type(cursor)
        or _without_type(cursor)
        or _kafka_table(cursor)
        or _dollar_name(cursor)
    )


def _explained(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for EXPLAIN of a statement of ours.

    Spark's own error quotes the statement after it has put the values of environment variables in the place of `${env:NAME}`.
    """
    if not cursor.at("EXPLAIN"):
        return None
    explained = cursor.tokens[2 if cursor.key(1) in EXPLAIN_OPTIONS else 1]
    try:
        is_ours = parse(cursor.text[explained.start :]) is not None
    except StreamqlError:
        is_ours = True
    if not is_ours:
        return None
    hint = (
        "run the statement without EXPLAIN; EXPLAIN SELECT … FROM stream shows how a stream is read, "
        "EXPLAIN REFRESH DYNAMIC TABLE how a table is refreshed"
    )
    return cursor.refused("EXPLAIN", "a statement of streamql's own has no plan", hint)


def _without_type(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for SHOW REFRESH HISTORY, which lacks the type of the table."""
    if not cursor.at("SHOW", "REFRESH", "HISTORY"):
        return None
    hint = "write SHOW DYNAMIC TABLE REFRESH HISTORY FOR name"
    return cursor.error("REFRESH HISTORY needs the type of the table", hint=hint, token=cursor.tokens[1])


def _dollar_name(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for a misspelt METADATA$… or SYSTEM$STREAM_…, which Spark cannot read."""
    for index, token in enumerate(cursor.tokens):
        if token.type is not TokenType.WORD or "$" not in token.text or token.key in COLUMNS:
            continue
        known = FUNCTIONS if key_at(cursor.tokens, index + 1) == "(" else COLUMNS
        guess = None if token.key in FUNCTIONS else nearest(token.text, known)
        if guess is not None:
            meant = COLUMNS.get(guess, guess)
            return cursor.error(f"there is no {token.text}", hint=f"did you mean {meant}?", token=token)
    return None


def _not_here(cursor: Cursor) -> StreamqlError | None:
    verb, after = cursor.key(), 1
    if verb == "CREATE" and cursor.key(1) == "OR" and cursor.key(2) == "REPLACE":
        after = 3
    for verbs, keywords, what, instead in _NOT_HERE:
        if verb in verbs and all(cursor.key(after + ahead) == word for ahead, word in enumerate(keywords)):
            return cursor.error(f"streamql has no {what}", hint=instead, code="UNSUPPORTED_CLAUSE")
    return None


def _misspelt(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for a statement whose first keywords are nearly those of one of ours."""
    verb = _closest(cursor.key(), _VERBS)
    if verb is None:
        return None
    keywords = [verb]
    for ahead in range(1, _WORDS_MAX):
        key = cursor.key(ahead)
        if key and distance(key, "STREAM", _MISTAKES_MAX) <= _MISTAKES_MAX:
            keywords.append("STREAMS" if verb == "SHOW" and "CREATE" not in keywords else "STREAM")
            return None if _is_table(cursor, keywords) else _did_you_mean(cursor, keywords)
        close = _closest(key, _BETWEEN)
        if close is None:
            return None
        keywords.append(close)
    return None


def _closest(key: str, known: Collection[str]) -> str | None:
    """Returns the known word that `key` is, or is a misspelling of; of short keywords, only what is nearly the same."""
    if key in known:
        return key
    fits = [(distance(key, word, _MISTAKES_MAX), word) for word in known if len(word) > 3]
    mistakes, word = min(fits)
    return word if mistakes <= (_MISTAKES_MAX if len(word) > 4 else 1) else None


def _is_table(cursor: Cursor, keywords: list[str]) -> bool:
    """Returns whether the word taken for STREAM is more likely a table's name: CREATE TABLE steam (a INT)."""
    if "TABLE" not in keywords or (keywords[0] == "SHOW" and "CREATE" not in keywords):
        return False
    following = cursor.tokens[min(len(keywords), len(cursor.tokens) - 1)]
    return name_part(following) is None or following.key in AFTER_TABLE_NAME


def _did_you_mean(cursor: Cursor, keywords: list[str]) -> StreamqlError | None:
    """Returns the error for a statement whose first keywords should be `keywords`; None when they are, and in their order."""
    condition = [word for word in keywords if word in ("IF", "NOT", "EXISTS")]
    meant = [word for word in keywords if word not in condition and word not in ("TEMPORARY", "TEMP")] + condition
    written = cursor.tokens[: len(keywords)]
    if [token.key for token in written] == meant:
        return None
    wrong = next(token for token, word in zip(written, meant + [""] * len(written), strict=False) if token.key != word)
    return _not_a_statement(cursor, written, meant, wrong)


def _misspelt_phrase(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for a statement whose first keywords are nearly one of the phrases."""
    for phrase in (*_PHRASES, *_KAFKA_PHRASES):
        written = cursor.tokens[: len(phrase)]
        if not all(_is_nearly(token.key, word) for token, word in zip(written, phrase, strict=False)):
            continue
        wrong = next((token for token, word in zip(written, phrase, strict=False) if token.key != word), None)
        if len(written) == len(phrase) and wrong is not None:
            if phrase in _KAFKA_PHRASES and not uses_kafka(cursor.tokens, len(phrase)):
                return None
            return _not_a_statement(cursor, written, phrase, wrong)
    return None


def _mixed_type(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for DYNAMIC VIEW and MATERIALIZED TABLE."""
    for phrase in _DYNAMIC:
        size = len(phrase)
        meant = _MIXED.get((cursor.key(size), cursor.key(size + 1)))
        if meant is not None and cursor.at(*phrase):
            return _not_a_statement(cursor, cursor.tokens[: size + 2], (*phrase, *meant), cursor.tokens[size])
    return None


def _is_nearly(key: str, word: str) -> bool:
    limit = 0 if len(word) < 4 else 1 if len(word) == 4 else _MISTAKES_MAX
    return bool(key) and distance(key, word, limit) <= limit


def _not_a_statement(cursor: Cursor, written: list[Token], meant: Sequence[str], wrong: Token) -> StreamqlError:
    found = " ".join(token.text for token in written)
    return cursor.error(f"{found} is not a statement", hint=f"did you mean {' '.join(meant)}?", token=wrong)


def _kafka_table(cursor: Cursor) -> StreamqlError | None:
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
