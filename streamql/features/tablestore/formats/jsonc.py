"""Reads JSON as people write it into job files: with comments and trailing commas, and with the place of each value.

DataX's page shows a job's reader without the braces around it. Therefore the text may also be the members of one object.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamql.errors import StreamqlError

DEPTH_MAX = 50
"""How deep objects and arrays may nest."""

Value = str | int | float | bool | None | Mapping[str, "Node"] | Sequence["Node"]
"""What a place of the text holds: a scalar, the members of an object by their keys, or the elements of an array."""

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_HEX = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")
_BLANKS = frozenset(" \t\r\n")


@dataclass(frozen=True)
class Node:
    """A value with its place. `line` and `column` count characters from 1; those of a member are the place of its value.

    `key_line` and `key_column`: the place of the member's key. None: the value is not a member of an object.
    """

    value: Value
    line: int
    column: int
    key_line: int | None = None
    key_column: int | None = None


def parse(text: str) -> Node:
    """Returns the value of a text in JSON, with `//` and `/* */` comments and trailing commas.

    Raises INVALID_JOB with line and column: for anything else, for a key that an object has twice, and for nesting deeper than DEPTH_MAX.
    """
    return _Reader(text.removeprefix("\ufeff")).document()


def error(node: Node, message: str, hint: str = "", *, at_key: bool = False) -> StreamqlError:
    """Returns INVALID_JOB at the place of a value, or of its key."""
    line, column = node.line, node.column
    if at_key and node.key_line is not None and node.key_column is not None:
        line, column = node.key_line, node.key_column
    return StreamqlError("INVALID_JOB", message, hint=hint, line=line, column=column)


class _Reader:
    """A text, and how far it was read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line_starts = [0, *(i + 1 for i, char in enumerate(text) if char == "\n")]

    def document(self) -> Node:
        """Reads the whole text: one value, or the members of an object without braces."""
        self._skip()
        start = self.at
        if self._peek() == '"':
            self._string()
            self._skip()
            is_member = self._peek() == ":"
            self.at = start
            if is_member:
                return Node(self._members("", 1), *self._place(start))
        node = self._value(0)
        self._skip()
        if self.at < len(self.text):
            raise self._error(f"found {self._found()} behind the end of the value", "a job file holds one object")
        return node

    def _value(self, depth: int) -> Node:
        self._skip()
        line, column = self._place(self.at)
        if depth > DEPTH_MAX:
            raise self._error(f"values nest deeper than {DEPTH_MAX} levels")
        char = self._peek()
        if char == "{":
            self.at += 1
            return Node(self._members("}", depth + 1), line, column)
        if char == "[":
            self.at += 1
            return Node(self._elements(depth + 1), line, column)
        if char == '"':
            return Node(self._string(), line, column)
        if char == "-" or char in _DIGITS:
            return Node(self._number(), line, column)
        return Node(self._word(), line, column)

    def _members(self, closing: str, depth: int) -> Mapping[str, Node]:
        """Reads members up to the closing brace, or with an empty `closing` up to the end of the text."""
        opened, members = self.at, dict[str, Node]()
        while True:
            self._skip()
            if self._ends(closing, opened, "{"):
                return members
            start = self.at
            if self._peek() != '"':
                raise self._error(f"expected a key in double quotes, found {self._found()}", 'write "key": value')
            key = self._string()
            line, column = self._place(start)
            if key in members:
                first = members[key].key_line
                raise self._error_at(
                    start, f'the key "{key}" is given twice, first in line {first}', "remove one of the two"
                )
            self._skip()
            self._expect(":", f'":" behind the key "{key}"')
            value = self._value(depth)
            members[key] = Node(value.value, value.line, value.column, line, column)
            self._separator(closing)

    def _elements(self, depth: int) -> Sequence[Node]:
        opened, elements = self.at, list[Node]()
        while True:
            self._skip()
            if self._ends("]", opened, "["):
                return tuple(elements)
            elements.append(self._value(depth))
            self._separator("]")

    def _ends(self, closing: str, opened: int, opening: str) -> bool:
        """Steps over the closing bracket, if it stands here. Raises INVALID_JOB at the end of the text if it is missing."""
        at_end = self.at == len(self.text)
        if closing and at_end:
            raise self._error_at(opened - 1, f'"{opening}" is not closed', f'add "{closing}"')
        if at_end or self._peek() == closing:
            self.at += len(closing)
            return True
        return False

    def _separator(self, closing: str) -> None:
        """Steps over a comma. A closing bracket, or the end, may follow instead."""
        self._skip()
        char = self._peek()
        if char == ",":
            self.at += 1
        elif char not in (closing, ""):
            expected = f'"," or "{closing}"' if closing else '"," or the end'
            raise self._error(f"expected {expected}, found {self._found()}", "values are separated by commas")

    def _string(self) -> str:
        start, parts = self.at, list[str]()
        self.at += 1
        while True:
            char = self._peek()
            if char in ("", "\n", "\r"):
                raise self._error_at(
                    start, "the string is not closed", 'add "; a line break in a string is written \\n'
                )
            self.at += 1
            if char == '"':
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if char == "\\":
                parts.append(self._escape())
            elif char < " " and char != "\t":
                raise self._error_at(
                    self.at - 1, f"a string holds the control character {ord(char)}", f"write \\u{ord(char):04x}"
                )
            else:
                parts.append(char)

    def _escape(self) -> str:
        char = self._peek()
        self.at += 1
        if char in _ESCAPES:
            return _ESCAPES[char]
        digits = self.text[self.at : self.at + 4]
        if char == "u" and len(digits) == 4 and _HEX.issuperset(digits):
            self.at += 4
            return chr(int(digits, 16))
        raise self._error_at(self.at - 2, f"\\{char} is not an escape of JSON", "write \\\\ for a backslash")

    def _number(self) -> int | float:
        start = self.at
        while self._peek() and (self._peek() in _DIGITS or self._peek() in "+-.eE"):
            self.at += 1
        text = self.text[start : self.at]
        whole, _, _ = text.partition(".")
        digits = whole.lower().partition("e")[0].removeprefix("-")
        is_plain = digits.isdigit() and (digits == "0" or not digits.startswith("0")) and not text.endswith(".")
        try:
            if not is_plain or len(text) > 40:
                raise ValueError(text)
            return int(text) if _DIGITS.issuperset(text.removeprefix("-")) else float(text)
        except ValueError as e:
            raise self._error_at(start, f"{text[:40]} is not a number of JSON") from e

    def _word(self) -> bool | None:
        start = self.at
        while self._peek().isalnum() or self._peek() == "_":
            self.at += 1
        word = self.text[start : self.at]
        if word in _WORDS:
            return _WORDS[word]
        self.at = start
        hint = "write texts in double quotes; true, false and null in lower case"
        raise self._error(f"expected a value, found {self._found()}", hint)

    def _skip(self) -> None:
        """Steps over blanks and comments."""
        while True:
            if self._peek() in _BLANKS:
                self.at += 1
            elif self.text.startswith("//", self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text.startswith("/*", self.at):
                end = self.text.find("*/", self.at + 2)
                if end < 0:
                    raise self._error("the comment is not closed", "add */")
                self.at = end + 2
            else:
                return

    def _peek(self) -> str:
        """Returns the next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def _expect(self, char: str, what: str) -> None:
        if self._peek() != char:
            raise self._error(f"expected {what}, found {self._found()}")
        self.at += 1

    def _found(self) -> str:
        """Returns what stands here, for messages."""
        end = self.at
        while end < len(self.text) and self.text[end] not in ' \t\r\n,:{}[]"' and end - self.at < 20:
            end += 1
        return self.text[self.at : max(end, self.at + 1)] or "the end"

    def _place(self, index: int) -> tuple[int, int]:
        """Line and column of a character, counted from 1."""
        line = bisect_right(self.line_starts, index)
        return line, index - self.line_starts[line - 1] + 1

    def _error(self, message: str, hint: str = "") -> StreamqlError:
        return self._error_at(self.at, message, hint)

    def _error_at(self, index: int, message: str, hint: str = "") -> StreamqlError:
        line, column = self._place(index)
        return StreamqlError("INVALID_JOB", message, hint=hint, line=line, column=column)
