"""Results as lines of a script: statements with their notes, or comments with a reason and what to use instead."""

from __future__ import annotations

from streamql.dialect.text.splitting import Fragment
from streamql.dialect.text.tokens import scan
from streamql.features.translate.model import Refused, Result, Translated
from streamql.features.translate.text.comments import commented

_BODY = "its statements, translated:"


def lines_of(fragment: Fragment, result: Result) -> str:
    """Returns the lines that stand for a statement of the script."""
    source = commented(fragment.text + (";" if fragment.terminated else ""))
    if isinstance(result, Translated):
        return _noted(result) or _notes(result) + source
    lines = [f"-- not translated: {_one_line(result.reason)}"]
    lines += [f"-- instead: {_one_line(result.hint)}"] if result.hint else []
    lines.append(source)
    if result.body:
        lines.append(f"-- {_BODY}")
        lines += [commented(statement, indent="  ") for statement in result.body]
    return "\n".join(lines)


def line_of_body(statement: str, result: Result) -> str:
    """Returns the lines that stand for a statement inside another one, which are commented with it."""
    if isinstance(result, Translated):
        return _noted(result) or _notes(result) + commented(f"{statement};")
    return f"-- not translated: {_one_line(result.reason)}\n{commented(f'{statement};')}"


def gap_of(gap: str, lines: str, before: Result | None) -> str:
    """Returns the text between two statements; what is a comment has lines of its own.

    `lines`: those of the statement behind it. `before`: the result of the one before it, None: it is the start of the script.
    """
    if before is not None and _is_comment(before) and gap.lstrip(" \t")[:1] not in ("\r", "\n"):
        gap = "\n" + gap.lstrip(" \t")
    if lines.startswith("-- "):
        gap = gap.rstrip(" \t")
        gap += "\n" if (gap or before is not None) and not gap.endswith("\n") else ""
    return gap


def _noted(result: Translated) -> str:
    """Returns the notes and the statements; empty: there are no statements."""
    return _notes(result) + "\n".join(f"{_closed(text)};" for text in result.statements) if result.statements else ""


def _notes(result: Translated) -> str:
    return "".join(f"-- note: {_one_line(note)}\n" for note in result.notes)


def _is_comment(result: Result) -> bool:
    """Returns whether a statement became a comment, behind which nothing else may stand in its line."""
    return isinstance(result, Refused) or not result.statements


def _one_line(text: str) -> str:
    """Returns a reason on the line of its comment: it may quote text of several lines."""
    line = " ".join(text.split())
    return line + " ." if line.endswith("\\") else line


def _closed(statement: str) -> str:
    """Returns the statement, so that a semicolon can follow: behind a last line that ends in a comment, on a line of its own."""
    last = max((token.end for token in scan(statement)), default=0)
    return statement + "\n" if "--" in statement[last:] else statement
