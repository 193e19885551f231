"""How the statements of a part of the language are recognized, parsed, and explained if they are written wrong. Data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamql.dialect.text.cursor import Cursor
from streamql.errors import StreamqlError

Parse = Callable[[Cursor], Any]
"""Parses a statement from its first token. Raises StreamqlError for one that has a fault."""


def _of_any(_: Cursor, __: int) -> bool:
    return True


@dataclass(frozen=True)
class Phrase:
    """The first keywords of statements. `is_meant`: whether a text whose first words, of that number, are nearly these means such a
    statement."""

    words: tuple[str, ...]
    is_meant: Callable[[Cursor, int], bool] = _of_any


@dataclass(frozen=True)
class Grammar:
    """The statements of a part of the language.

    `verbs`: the first words of its statements. `recognize`: returns the function that parses the statement, by its first words; None: it is
    another part's or Spark's. It starts at the first token, and moves the cursor as it likes. `phrases`: what a misspelt statement is
    compared with. `explains`: each returns the error for a statement that Spark has rejected; None: it has nothing to say.
    """

    verbs: frozenset[str]
    recognize: Callable[[Cursor], Parse | None]
    phrases: tuple[Phrase, ...] = ()
    explains: tuple[Callable[[Cursor], StreamqlError | None], ...] = ()
