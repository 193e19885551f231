"""A position in a statement's tokens, and what all statements are made of: keywords, names, literals, expressions.

All errors of the dialect about the text are raised here, so that each has a line, a column and a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain, repeat

from streamql.dialect.text.tokens import (
    NameParts,
    Span,
    Token,
    TokenType,
    line_and_column,
    name_part,
    span,
    string_value,
    tokenize,
    unterminated,
    unterminated_what,
)
from streamql.errors import StreamqlError
from streamql.misspelt import did_you_mean, suggestion

_OPEN = {"(": ")", "[": "]", "{": "}"}
_SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")
_BOOLEANS = {"TRUE": True, "FALSE": False}
_INTEGER_DIGITS_MAX = 18  # of a 64-bit integer, with room: versions and counts beyond are mistakes
# Taken for a name, one of these would move the error about a missing name to a later place.
_NOT_A_BARE_NAME = frozenset(("ON", "WITH", "AS", "SET", "UNSET", "AT", "BEFORE", "FROM", "WHERE", "SELECT"))
_STRINGS = (TokenType.STRING, TokenType.DOUBLE_QUOTED)


class Cursor:
    """The tokens of one statement and the index of the next. `grammar` is the hint of errors that have no better.

    `shown` are the words and symbols that errors may quote from the statement; None: all. A statement that may hold
    secrets sets it: errors then name the type of every other token ("a string") and not its text.
    """

    def __init__(self, text: str, tokens: list[Token] | None = None, index: int = 0, grammar: str = "") -> None:
        self.text = text
        self.tokens = tokenize(text) if tokens is None else tokens
        self.index = index
        self.grammar = grammar
        self.shown: frozenset[str] | None = None

    @cached_property
    def closers(self) -> dict[int, int]:
        """For every bracket that is closed, its index to the index of the one that closes it."""
        pairs: dict[int, int] = {}
        waiting: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.key in _OPEN:
                waiting.append(index)
            elif waiting and token.key == _OPEN[self.tokens[waiting[-1]].key]:
                pairs[waiting.pop()] = index
        return pairs

    @property
    def token(self) -> Token:
        """Returns the next token; at the end, the END token."""
        return self.tokens[min(self.index, len(self.tokens) - 1)]

    def key(self, ahead: int = 0) -> str:
        """Returns the key of the token that many places ahead."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)].key

    def at(self, *keys: str) -> bool:
        """Returns whether the next tokens are these keywords or symbols."""
        return all(self.key(ahead) == key for ahead, key in enumerate(keys))

    def at_any(self, keys: Iterable[str]) -> bool:
        """Returns whether the next token is one of these."""
        return self.key() in keys

    def at_end(self) -> bool:
        """Returns whether no token is left."""
        return self.token.type is TokenType.END

    def at_string(self) -> bool:
        """Returns whether the next token is a string literal."""
        return self.token.type in _STRINGS

    def at_name(self) -> bool:
        """Returns whether a name can start here: a word, or a name in backquotes or double quotes."""
        return self.token.type in (TokenType.WORD, TokenType.BACKQUOTED, TokenType.DOUBLE_QUOTED)

    def take(self, *keys: str) -> bool:
        """Step over these keywords or symbols if they come next."""
        if not self.at(*keys):
            return False
        self.index += len(keys)
        return True

    def advance(self) -> Token:
        """Step over the next token and return it."""
        token = self.token
        self.index += 1
        return token

    # --- errors

    def error(
        self, message: str, *, hint: str = "", token: Token | None = None, code: str = "SYNTAX_ERROR"
    ) -> StreamqlError:
        """Returns an error at the token (by default the next one)."""
        line, column = line_and_column(self.text, (token or self.token).start)
        return StreamqlError(code, message, hint=hint or self.grammar, line=line, column=column)

    def expected(self, what: str, hint: str = "") -> StreamqlError:
        """Returns the error that something else stands where `what` is wanted."""
        open_token = unterminated(self.tokens)
        if open_token is not None:
            return self.unterminated(open_token)
        if self._is_hidden():
            return self.error(f"expected {what} in place of the {self.found()}", hint=hint)
        return self.error(f"expected {what}, found {self.found()}", hint=hint)

    def expected_one_of(self, words: Collection[str], otherwise: str = "") -> StreamqlError:
        """Returns the error that another word stands where one of a few is wanted. `otherwise`: the hint if it is near to none."""
        return self.expected(listed(words), suggestion(self.key(), words) or otherwise)

    def unterminated(self, token: Token) -> StreamqlError:
        """Returns the error for a string, name or comment that is never closed."""
        what = unterminated_what(token)
        line, column = line_and_column(self.text, token.start)
        return self.error(
            f"unterminated {what} that starts at line {line}, column {column}", hint=f"close the {what}", token=token
        )

    def refused(self, clause: str, why: str, hint: str = "", token: Token | None = None) -> StreamqlError:
        """Returns the error for a clause that parses and cannot be honoured."""
        return self.error(f"{clause} is not supported: {why}", hint=hint, token=token, code="UNSUPPORTED_CLAUSE")

    def not_a_statement(self, size: int, meant: Sequence[str], wrong: Token | None = None) -> StreamqlError:
        """Returns the error for a text whose first words, of a number, should be `meant`. `wrong`: by default the first that is not."""
        written = self.tokens[:size]
        first = next((t for t, word in zip(written, chain(meant, repeat("")), strict=False) if t.key != word), None)
        message = f"{' '.join(token.text for token in written)} is not a statement"
        return self.error(message, hint=did_you_mean(" ".join(meant)), token=wrong or first)

    def found(self) -> str:
        """Returns the next token as an error shows it: its text, or its type if errors may not quote it."""
        token = self.token
        if token.type is TokenType.END or self._is_hidden():
            return token.type.value
        return token.text if len(token.text) <= 40 else token.text[:37] + "..."

    def _is_hidden(self) -> bool:
        return self.shown is not None and self.token.type is not TokenType.END and self.key() not in self.shown

    def expect(self, *keys: str, hint: str = "") -> Token:
        """Step over these keywords or symbols; an error names them when something else comes."""
        first = self.token
        if not self.take(*keys):
            raise self.expected(" ".join(keys), hint)
        return first

    def expect_end(self) -> None:
        """Raises unless the statement ends here."""
        if self.at(";"):
            raise self.error(
                "one statement at a time: text follows the semicolon", hint="run the statements one by one"
            )
        if not self.at_end():
            raise self.expected("the end of the statement")

    # --- pieces

    def name(self, what: str) -> tuple[NameParts, Span]:
        """Returns a name of 1 to 3 parts; parts are bare, in backquotes, or (as Snowflake has them) in double quotes."""
        first = self.token
        parts = [self._part(what)]
        while self.take("."):
            parts.append(self._part(f"a part of {what}"))
        if len(parts) > 3:
            raise self.error(f"a name has at most 3 parts (catalog.schema.name), this has {len(parts)}", token=first)
        return tuple(parts), span(self.text, first.start, self.tokens[self.index - 1].end)

    def single_name(self, what: str) -> tuple[str, Span]:
        """Returns a name of one part."""
        first = self.token
        name, where = self.name(what)
        if len(name) > 1:
            raise self.error(f"{what} has one part, this has {len(name)}", token=first)
        return name[0], where

    def schema(self, listed: str, following: Collection[str]) -> NameParts:
        """`{IN | FROM} [SCHEMA] name`, from the first keyword on. `listed`: what the statement lists, for errors;
        `following`: the keywords that may come next, which tell a schema named `schema` from the keyword."""
        self.advance()
        if self.at("ACCOUNT"):
            raise self.refused("IN ACCOUNT", f"{listed} are listed per schema", "write IN schema")
        if self.at_any(_SCHEMA_WORDS):
            self.advance()
            if not self.at_name() or self.at_any((".", *following)):
                self.index -= 1  # a schema of that name
        token = self.token
        schema, _ = self.name("the name of a schema")
        if len(schema) > 2:
            raise self.error("a schema's name has at most 2 parts (catalog.schema)", token=token)
        return schema

    def if_not_exists(self, or_replace: bool, what: str) -> bool:
        """Step over IF NOT EXISTS; an error if OR REPLACE was there before. `what`: what the statement creates."""
        start = self.token
        found = self.take("IF", "NOT", "EXISTS")
        if found and or_replace:
            hint = f"OR REPLACE makes a new {what} in any case, IF NOT EXISTS keeps the old one: choose one"
            raise self.error("OR REPLACE and IF NOT EXISTS contradict each other", hint=hint, token=start)
        return found

    def _part(self, what: str) -> str:
        token = self.token
        part = string_value(token) if token.type is TokenType.DOUBLE_QUOTED else name_part(token)
        if part is None:
            raise self.expected(what)
        if token.key in _NOT_A_BARE_NAME and "." not in (self.key(1), self.key(-1)):
            raise self.expected(what, f"if that is its name, quote it: `{token.text}`")
        if not part:
            raise self.error(f"{what} is empty")
        self.index += 1
        return part

    def string(self, what: str) -> str:
        """Returns a string literal; adjacent literals are one, as in Spark."""
        if not self.at_string():
            raise self.expected(f"{what} as a string literal")
        value = ""
        while self.at_string():
            value += string_value(self.advance())
        return value

    def boolean(self, what: str) -> bool:
        """TRUE or FALSE, quoted or bare."""
        return _BOOLEANS[self.choice(what, _BOOLEANS, f"write {what} = TRUE")]

    def choice(self, what: str, words: Collection[str], otherwise: str) -> str:
        """Step over one of a few words, quoted or bare, and return it. Raises INVALID_PROPERTY. `otherwise`: the hint if another word is
        near to none of them."""
        word = string_value(self.token).strip().upper() if self.at_string() else self.key()
        if word not in words:
            message = f"{what} takes {listed(words)}, found {self.found()}"
            raise self.error(message, hint=suggestion(word, words) or otherwise, code="INVALID_PROPERTY")
        self.index += 1
        return word

    def integer(self) -> int | None:
        """Step over a whole number, bare or quoted, and return it; None when something else comes."""
        token = self.token
        # 2L: as a BIGINT's value is put into the text
        digits = string_value(token).strip() if self.at_string() else token.text.rstrip("lLsSyY")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _INTEGER_DIGITS_MAX):
            return None
        self.index += 1
        return int(digits)

    def raw(self, what: str, stop: Callable[[], bool]) -> str:
        """Returns the text from here to where `stop` holds outside all brackets, or the end: an expression, kept as written."""
        first = self.index
        waiting: list[str] = []
        while not self.at_end() and (waiting or not stop()):
            key = self.key()
            if key in _OPEN:
                waiting.append(_OPEN[key])
            elif waiting and key == waiting[-1]:
                waiting.pop()
            elif key in _OPEN.values():
                raise self.error(f"unbalanced {key} in {what}")
            elif key == ";":
                break
            self.index += 1
        if waiting:
            raise self.expected(waiting[-1])
        if self.index == first:
            raise self.expected(what)
        return self.text[self.tokens[first].start : self.tokens[self.index - 1].end]


def listed(words: Iterable[str]) -> str:
    """Returns what is wanted as errors say it: A, B or C."""
    *others, last = words
    return f"{', '.join(others)} or {last}"
