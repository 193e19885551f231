"""The texts that -e, -f and stdin give. Imports nothing but the standard library, so that a wrong path is reported at once."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from streamql.console.options import Input

_FOREIGN_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK": "a zip file", b"\x1f\x8b": "a gzip file"}


class UsageError(Exception):
    """The command cannot start: a file that is missing or is not text, a directory that cannot be made."""


class Text(NamedTuple):
    """A script; `origin` is its file's name, empty if there is none."""

    content: str
    origin: str = ""


def read(inputs: Iterable[Input]) -> list[Text]:
    """Returns the text of each input. Raises UsageError for a file that cannot be read or is no UTF-8."""
    return [_text(source) for source in inputs]


def _text(source: Input) -> Text:
    if source.type == "text":
        return Text(source.value)
    if source.type == "stdin":
        return Text(_decoded(_stdin_bytes(), "standard input"))
    return Text(_decoded(_file_bytes(source.value), source.value), source.value)


def _stdin_bytes() -> bytes:
    buffer = getattr(sys.stdin, "buffer", None)
    return buffer.read() if buffer is not None else sys.stdin.read().encode()


def _file_bytes(name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except IsADirectoryError:
        raise UsageError(f"{name} is a directory; -f takes a file of SQL statements") from None
    except OSError as e:
        raise UsageError(f"cannot read {name}: {e.strerror or e}") from None


def _decoded(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        foreign = next((what for mark, what in _FOREIGN_MARKS.items() if content.startswith(mark)), None)
        if foreign is not None:
            raise UsageError(f"{name} is {foreign}; SQL is read as UTF-8") from None
        line = content.count(b"\n", 0, e.start) + 1
        raise UsageError(f"{name} is not UTF-8: byte 0x{content[e.start]:02x} in line {line}") from None
    if "\0" in text:
        raise UsageError(f"{name} is not a text: it holds NUL bytes")
    return text.replace("\r\n", "\n")
