"""Options of connections and external tables: `key = value`, alone or in a list. Errors never quote a value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamql.dialect.secrets import REFERENCE_HINT, literal_secret
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import Token, TokenType, name_part, string_value
from streamql.errors import StreamqlError

_DOTTED = re.compile(r"[A-Za-z]+(?:\.[A-Za-z]+)+")


@dataclass(frozen=True)
class Option:
    """An option as written. `is_bare`: its key is one word without quotes; `start`, `value_start`: its tokens."""

    key: str
    value: str
    is_bare: bool
    start: Token
    value_start: Token


def read_option(cursor: Cursor) -> Option:
    """`key [=] value`. A value is a string, a number, TRUE, FALSE, or a list of strings in brackets.

    A list becomes one string with commas between.
    """
    start = cursor.token
    key, is_bare = _key(cursor)
    has_sign = cursor.take("=")
    value_start = cursor.token
    value = read_string(cursor, "the value", joined=has_sign) if cursor.at_string() else _value(cursor)
    return Option(key, value, is_bare, start, value_start)


def read_list(cursor: Cursor) -> list[Option]:
    """`key [=] value, …)`; the opening parenthesis is read."""
    options = []
    while True:
        options.append(read_option(cursor))
        if cursor.take(")"):
            return options
        cursor.expect(",", hint="options are separated by commas, the list ends with )")


def read_string(cursor: Cursor, what: str, *, joined: bool = True) -> str:
    """Returns a string literal. `joined`: adjacent literals are one value, as in Spark.

    A literal that reads as the key of the next option ends it: else a forgotten comma would make a secret a part of a
    value that is not a secret. `'$' '{'` is always joined: Parser.scala writes the value of a parameter so.
    """
    if not cursor.at_string():
        raise cursor.expected(f"{what} as a string literal")
    value = string_value(cursor.advance())
    while cursor.at_string() and cursor.key(1) != "=":
        following = string_value(cursor.token)
        is_reference = value.endswith("$") and following.startswith("{")
        if not is_reference and (not joined or _DOTTED.fullmatch(following)):
            break
        value += following
        cursor.advance()
    return value


def check_secret(cursor: Cursor, key: str, option: Option, prefix: str = "") -> None:
    """Raises INVALID_PROPERTY if the option holds a secret in plain text.

    `key` is Kafka's name, `prefix` what the statement puts before it.
    """
    if literal_secret(key, option.value):
        message = f"{prefix}{key} holds a secret in plain text, and the catalog would store it"
        raise invalid(cursor, message, REFERENCE_HINT, option.start)


def given_twice(cursor: Cursor, option: Option, name: str) -> StreamqlError:
    """Returns the error for an option that was there before. `name`: what all its spellings stand for."""
    hint = "leave one of them out" + ("" if option.key == name else f": {option.key} stands for {name}")
    return invalid(cursor, f"{option.key} is given twice", hint, option.start)


def invalid(cursor: Cursor, message: str, hint: str, token: Token) -> StreamqlError:
    """Returns the error for an option that is known and wrong, or not known."""
    return cursor.error(message, hint=hint, token=token, code="INVALID_PROPERTY")


def _key(cursor: Cursor) -> tuple[str, bool]:
    if cursor.at_string():
        return string_value(cursor.advance()), False
    is_bare = cursor.token.type is TokenType.WORD
    parts = []
    while True:
        part = name_part(cursor.token)
        if part is None:
            raise cursor.expected("an option: key = 'value'")
        cursor.advance()
        parts.append(part)
        if not cursor.take("."):
            return ".".join(parts), is_bare and len(parts) == 1


def _value(cursor: Cursor) -> str:
    if cursor.take("["):
        return ",".join(_items(cursor))
    if cursor.at_any(("TRUE", "FALSE")):
        return cursor.advance().text.lower()
    sign = "-" if cursor.take("-") else ""
    if cursor.token.type is not TokenType.NUMBER:
        raise cursor.expected("the value of the option: a string, a number, TRUE or FALSE", "write key = 'value'")
    return sign + cursor.advance().text


def _items(cursor: Cursor) -> list[str]:
    """Strings with commas between up to the closing bracket; the opening one is read."""
    items = []
    while True:
        items.append(cursor.string("an item of the list").strip())
        if cursor.take("]"):
            return items
        cursor.expect(",", hint="items are strings with commas between, the list ends with ]")
