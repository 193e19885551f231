"""How the statements of a part of the language are recognized, parsed, completed, and explained if they are written wrong. Data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamql.dialect.statements import StreamAction
from streamql.dialect.text.cursor import Cursor
from streamql.errors import StreamqlError
from streamql.registered import registered

Parse = Callable[[Cursor], Any]
"""Parses a statement from its first token. Raises StreamqlError for one that has a fault."""

ANY_RELATION = "any relation"
A_NAME = "a name"
"""A name that completion does not know: a new one, or of something that is not a relation."""


def _of_any(_: Cursor, __: int) -> bool:
    return True


@dataclass(frozen=True, eq=False)
class Follows:
    """What may follow the first keywords of a statement: what completion offers there.

    A type of name is a type of relation, such as "stream", or ANY_RELATION, or A_NAME.
    """

    name: str = ""
    """The type of the name that comes next; empty: there is none."""
    options: tuple[str, ...] = ()
    """Keywords before the name."""
    clauses: tuple[str, ...] = ()
    names: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Types of other names, by the words before them."""
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What may stand in a list in parentheses, by the word before it. Nothing is offered in other parentheses."""
    unknown: tuple[str, ...] = ()
    """Words behind which nothing is offered."""
    query: tuple[str, ...] = ()
    """Words behind which the rest is Spark's."""


@dataclass(frozen=True)
class Phrase:
    """The first keywords of statements.

    `is_meant`: whether a text whose first words, of that number, are nearly these means such a statement. `is_compared`: misspelt
    statements are compared with it. `is_offered`: completion offers it; if not, it is another spelling of one that is offered.
    """

    words: tuple[str, ...]
    is_meant: Callable[[Cursor, int], bool] = _of_any
    follows: Follows = Follows()
    is_compared: bool = True
    is_offered: bool = True


@dataclass(frozen=True)
class Grammar:
    """The statements of a part of the language.

    `verbs`: the first words of its statements. `recognize`: returns the function that parses the statement, by its first words; None: it is
    another part's or Spark's. It starts at the first token, and moves the cursor as it likes. `phrases`: the first keywords of all its
    statements. `explains`: each returns the error for a statement that Spark has rejected; None: it has nothing to say. `sources`: the
    keywords for sources that CREATE STREAM … ON takes. `stream_actions`, `stream_clauses`: by their first word, what parses
    actions of ALTER STREAM and clauses of CREATE STREAM, from that word on.
    """

    verbs: frozenset[str]
    recognize: Callable[[Cursor], Parse | None]
    phrases: tuple[Phrase, ...] = ()
    explains: tuple[Callable[[Cursor], StreamqlError | None], ...] = ()
    sources: tuple[tuple[str, ...], ...] = ()
    stream_actions: Mapping[str, Callable[[Cursor], StreamAction]] = field(default_factory=dict)
    stream_clauses: Mapping[str, Callable[[Cursor], StreamAction]] = field(default_factory=dict)


def stream_action(word: str) -> Callable[[Cursor], StreamAction] | None:
    """Returns what parses the actions of ALTER STREAM that begin with a word; None: no feature has one."""
    return next((g.stream_actions[word] for g in grammars() if word in g.stream_actions), None)


def stream_clause(word: str) -> Callable[[Cursor], StreamAction] | None:
    """Returns what parses the clauses of CREATE STREAM that begin with a word; None: no feature has one."""
    return next((g.stream_clauses[word] for g in grammars() if word in g.stream_clauses), None)


def grammars() -> Iterator[Grammar]:
    """Yield how the statements of each feature are recognized."""
    return (grammar for of_feature in registered("grammar") if (grammar := of_feature()) is not None)
