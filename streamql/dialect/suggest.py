"""The error for a statement that Spark rejected, if it resembles one of ours with a mistake in it."""

from __future__ import annotations

from streamql.dialect.grammar import grammars
from streamql.dialect.parser import parse
from streamql.dialect.rewrites.dollar_names import COLUMNS, FUNCTIONS
from streamql.dialect.streams import AFTER_TABLE_NAME
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import EXPLAIN_OPTIONS, key_at
from streamql.dialect.text.tokens import TokenType, name_part
from streamql.errors import StreamqlError
from streamql.misspelt import did_you_mean, nearest, taken_for

_VERBS = ("CREATE", "DROP", "ALTER", "SHOW", "DESC", "DESCRIBE")
_WORDS_MAX = 7  # CREATE OR REPLACE TABLE STREAM, CREATE TABLE IF NOT EXISTS STREAM
# Words between the verb and STREAM that leave no doubt about the statement.
_BETWEEN = frozenset(("OR", "REPLACE", "TABLE", "FULL", "TERSE", "CREATE", "IF", "NOT", "EXISTS", "TEMPORARY", "TEMP"))


def explain_rejected(text: str) -> StreamqlError | None:
    """Returns the error to show for a statement that Spark rejected, if there is a better one than Spark's; else None.

    SYNTAX_ERROR with "did you mean CREATE STREAM?" for one that is within 2 mistakes per word of a statement of ours;
    UNSUPPORTED_CLAUSE for ALTER of what is replaced as a whole, and for EXPLAIN of a statement
    of ours.
    """
    cursor = Cursor(text)
    if cursor.at_end() or cursor.token.type is not TokenType.WORD:
        return None
    return (
        _explained(cursor)
        or _misspelt(cursor)
        or _misspelt_phrase(cursor)
        or _explained_by_a_part(cursor)
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


def _explained_by_a_part(cursor: Cursor) -> StreamqlError | None:
    explains = (explain for grammar in grammars() for explain in grammar.explains)
    return next((error for explain in explains if (error := explain(cursor)) is not None), None)


def _dollar_name(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for a misspelt METADATA$… or SYSTEM$STREAM_…, which Spark cannot read."""
    for index, token in enumerate(cursor.tokens):
        if token.type is not TokenType.WORD or "$" not in token.text or token.key in COLUMNS:
            continue
        known = FUNCTIONS if key_at(cursor.tokens, index + 1) == "(" else COLUMNS
        guess = None if token.key in FUNCTIONS else nearest(token.text, known)
        if guess is not None:
            meant = COLUMNS.get(guess, guess)
            return cursor.error(f"there is no {token.text}", hint=did_you_mean(meant), token=token)
    return None


def _misspelt(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for a statement whose first keywords are nearly those of one of ours."""
    verb = taken_for(cursor.key(), _VERBS)
    if verb is None:
        return None
    keywords = [verb]
    for ahead in range(1, _WORDS_MAX):
        key = cursor.key(ahead)
        if taken_for(key, ("STREAM",)):
            keywords.append("STREAMS" if verb == "SHOW" and "CREATE" not in keywords else "STREAM")
            return None if _is_table(cursor, keywords) else _wrong_keywords(cursor, keywords)
        keyword = taken_for(key, _BETWEEN)
        if keyword is None:
            return None
        keywords.append(keyword)
    return None


def _is_table(cursor: Cursor, keywords: list[str]) -> bool:
    """Returns whether the word taken for STREAM is more likely a table's name: CREATE TABLE steam (a INT)."""
    if "TABLE" not in keywords or (keywords[0] == "SHOW" and "CREATE" not in keywords):
        return False
    following = cursor.tokens[min(len(keywords), len(cursor.tokens) - 1)]
    return name_part(following) is None or following.key in AFTER_TABLE_NAME


def _wrong_keywords(cursor: Cursor, keywords: list[str]) -> StreamqlError | None:
    """Returns the error for a statement whose first keywords should be `keywords`; None when they are, and in their order."""
    condition = [word for word in keywords if word in ("IF", "NOT", "EXISTS")]
    meant = [word for word in keywords if word not in condition and word not in ("TEMPORARY", "TEMP")] + condition
    size = len(keywords)
    return None if size == len(meant) and cursor.at(*meant) else cursor.not_a_statement(size, meant)


def _misspelt_phrase(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for a statement whose first keywords are nearly one of the phrases."""
    phrases = (phrase for grammar in grammars() for phrase in grammar.phrases if phrase.is_compared)
    # The longest first: SHOW DYNAMIC TABLE REFRESH … is nearly SHOW DYNAMIC TABLES.
    for phrase in sorted(phrases, key=lambda phrase: -len(phrase.words)):
        size, words = len(phrase.words), enumerate(phrase.words)
        if not cursor.at(*phrase.words) and all(taken_for(cursor.key(ahead), (word,)) for ahead, word in words):
            return cursor.not_a_statement(size, phrase.words) if phrase.is_meant(cursor, size) else None
    return None
