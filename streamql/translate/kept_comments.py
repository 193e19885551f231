"""Comments inside a statement that its translation has lost: they come back as lines before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from streamql.translate.lexical import commented, comments


def with_comments(source: str, statements: Sequence[str]) -> tuple[str, ...]:
    """Returns the statements, with the comments of the source that none of them has before the first."""
    written = Counter(_core(comment) for statement in statements for comment in comments(statement))
    lost = []
    for comment in comments(source):
        if written[_core(comment)]:
            written[_core(comment)] -= 1
        elif _core(comment):
            lost.append(commented(_without_marks(comment)))
    if not lost or not statements:
        return tuple(statements)
    return ("\n".join((*lost, statements[0])), *statements[1:])


def _core(comment: str) -> str:
    """Returns the words of a comment: sqlglot moves its marks, its spaces and its lines."""
    return " ".join(_without_marks(comment).split())


def _without_marks(comment: str) -> str:
    return comment.removeprefix("/*").removesuffix("*/").removeprefix("--").strip()
