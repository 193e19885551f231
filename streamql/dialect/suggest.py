"""The error for a statement that Spark rejected, if it resembles one of ours with a mistake in it."""

from __future__ import annotations

from collections.abc import Collection

from streamql.dialect.cursor import Cursor
from streamql.dialect.parser import AFTER_TABLE_NAME
from streamql.dialect.rewriter import COLUMNS, FUNCTIONS
from streamql.dialect.shape import key_at
from streamql.dialect.spelling import distance, nearest
from streamql.dialect.tasks import task_refused
from streamql.dialect.tokens import Token, TokenType, name_part
from streamql.errors import StreamqlError

_VERBS = ("CREATE", "DROP", "ALTER", "SHOW", "DESC", "DESCRIBE")
_MISTAKES_MAX = 2
_WORDS_MAX = 7  # CREATE OR REPLACE TABLE STREAM, CREATE TABLE IF NOT EXISTS STREAM
# Words between the verb and STREAM that leave no doubt about the statement.
_BETWEEN = frozenset(("OR", "REPLACE", "TABLE", "FULL", "TERSE", "CREATE", "IF", "NOT", "EXISTS", "TEMPORARY", "TEMP"))

_NOT_HERE: tuple[tuple[frozenset[str], tuple[str, ...], str, str], ...] = (
    (
        frozenset((*_VERBS, "REFRESH")),
        ("DYNAMIC", "TABLE"),
        "dynamic tables",
        "make a table, and bring it up to date with MERGE from a stream",
    ),
    (frozenset(("SHOW",)), ("DYNAMIC", "TABLES"), "dynamic tables", "SHOW TABLES lists tables, SHOW STREAMS streams"),
    (
        frozenset((*_VERBS, "REFRESH")),
        ("MATERIALIZED", "VIEW"),
        "materialized views",
        "make a table, and bring it up to date with MERGE from a stream",
    ),
    (frozenset(_VERBS), ("STORAGE", "CONNECTION"), "Kafka connections", "read Kafka with Spark's own kafka source"),
)


def explain_rejected(text: str) -> StreamqlError | None:
    """The error to show for a statement that Spark rejected, if there is a better one than Spark's; else None.

    SYNTAX_ERROR with "did you mean CREATE STREAM?" for one that is within 2 mistakes per word of a statement of ours;
    UNSUPPORTED_CLAUSE for statements of other systems with streams (tasks, dynamic tables, materialized views, Kafka).
    """
    cursor = Cursor(text)
    if cursor.at_end() or cursor.token.type is not TokenType.WORD:
        return None
    return task_refused(text) or _not_here(cursor) or _misspelt(cursor) or _dollar_name(cursor)


def _dollar_name(cursor: Cursor) -> StreamqlError | None:
    """The error for a misspelt METADATA$… or SYSTEM$STREAM_…, which Spark cannot read."""
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
    if verb == "CREATE" and cursor.key(1) == "EXTERNAL" and cursor.key(2) == "TABLE" and _is_kafka(cursor.tokens):
        hint = "read Kafka with Spark's own kafka source, write to a Delta table, and make a stream on that"
        return cursor.error("streamql has no external tables on Kafka", hint=hint, code="UNSUPPORTED_CLAUSE")
    return None


def _is_kafka(tokens: list[Token]) -> bool:
    return any(token.key == "USING" and key_at(tokens, index + 1) == "KAFKA" for index, token in enumerate(tokens))


def _misspelt(cursor: Cursor) -> StreamqlError | None:
    """The error for a statement whose first keywords are nearly those of one of ours."""
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
    """The known word that `key` is, or is a misspelling of; of short keywords, only what is nearly the same."""
    if key in known:
        return key
    fits = [(distance(key, word, _MISTAKES_MAX), word) for word in known if len(word) > 3]
    mistakes, word = min(fits)
    return word if mistakes <= (_MISTAKES_MAX if len(word) > 4 else 1) else None


def _is_table(cursor: Cursor, keywords: list[str]) -> bool:
    """Whether the word taken for STREAM is more likely a table's name: CREATE TABLE steam (a INT)."""
    if "TABLE" not in keywords or (keywords[0] == "SHOW" and "CREATE" not in keywords):
        return False
    following = cursor.tokens[min(len(keywords), len(cursor.tokens) - 1)]
    return name_part(following) is None or following.key in AFTER_TABLE_NAME


def _did_you_mean(cursor: Cursor, keywords: list[str]) -> StreamqlError | None:
    """The error for a statement whose first keywords should be `keywords`; None when they are, and in their order."""
    condition = [word for word in keywords if word in ("IF", "NOT", "EXISTS")]
    meant = [word for word in keywords if word not in condition and word not in ("TEMPORARY", "TEMP")] + condition
    written = cursor.tokens[: len(keywords)]
    if [token.key for token in written] == meant:
        return None
    wrong = next(token for token, word in zip(written, meant + [""] * len(written), strict=False) if token.key != word)
    found = " ".join(token.text for token in written)
    return cursor.error(f"{found} is not a statement", hint=f"did you mean {' '.join(meant)}?", token=wrong)
