"""What a rule of rewriting is: something of ours in a statement of Spark, and the splices with which Spark can read it. Data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.merge import Merge, read_merge
from streamql.dialect.text.shape import Relation, Shape, relations, shape
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import NameParts, unterminated
from streamql.registered import registered

IsStream = Callable[[NameParts], bool]
ColumnsOf = Callable[[NameParts], Sequence[str]]


@dataclass(frozen=True, eq=False)
class SparkStatement:
    """A statement of Spark, as rules see it. `is_stream` and `columns_of` ask the catalog, so rules call them only where the answer
    matters.

    `is_stream`: whether a name as written is a stream. `columns_of`: the names of a table's columns; empty: they are not known.
    """

    cursor: Cursor
    is_stream: IsStream
    columns_of: ColumnsOf

    @cached_property
    def shape(self) -> Shape:
        """Returns what type of statement it is."""
        return shape(self.cursor.tokens)

    @cached_property
    def merge(self) -> Merge | None:
        """Returns the parts of a MERGE; None: it is another statement."""
        return read_merge(self.cursor, self.shape.verb)

    @cached_property
    def relations(self) -> Sequence[Relation]:
        """Returns the names that stand where a relation is read, in the order of the text."""
        return tuple(relations(self.cursor.tokens, None if self.merge is None else self.shape.verb))

    @property
    def is_terminated(self) -> bool:
        """Returns whether each quote and comment is closed. Nothing is rewritten in a text that is not."""
        return unterminated(self.cursor.tokens) is None


@dataclass(frozen=True)
class Edit:
    """What a rule does to a statement. `warnings`: sentences for the user."""

    splices: Sequence[Splice] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Clause:
    """A clause of ours behind a relation, which ends before the token `after`. `consumes`: it asks to consume the relation."""

    after: int
    splices: Sequence[Splice] = ()
    consumes: bool = False


@dataclass(frozen=True)
class _Rule:
    """`words`: a text in which this is not found has nothing for the rule, so the rule is not asked."""

    name: str
    words: re.Pattern[str]


@dataclass(frozen=True)
class ClauseRule(_Rule):
    """Rewrites a clause behind the name of a relation, before Spark parses the statement.

    `find` returns the clause behind a relation; None: there is none of this rule. Raises StreamqlError for a clause with a mistake.
    """

    find: Callable[[SparkStatement, Relation], Clause | None]


@dataclass(frozen=True)
class StatementRule(_Rule):
    """Rewrites what may stand anywhere in a statement.

    `find` raises StreamqlError for a mistake. `is_of_rejected`: it is asked only once Spark's parser has rejected the statement.
    """

    find: Callable[[SparkStatement], Edit]
    is_of_rejected: bool = False


RewriteRule = ClauseRule | StatementRule


def rewrite_rules() -> Iterator[RewriteRule]:
    """Yield the rules by which statements of Spark are rewritten."""
    return (rule for of_feature in registered("rewrites") for rule in of_feature())
