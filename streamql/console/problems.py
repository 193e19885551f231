"""What went wrong, for display: the sentence, where in the statement, what to type next; no stack traces.

Spark writes the place of an error into its message in three ways, and appends plans and stack traces to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamql.dialect import concealed
from streamql.errors import SPARK_WRAPPERS, StreamqlError

_TRACE = re.compile(r"\n+(?:JVM stacktrace:\n|\s+at [\w.$/<>]+\(|Driver stacktrace:)")
_PY4J = re.compile(r"\AAn error occurred while calling [\w.:$]+\s*\n: ")
_CLASS = re.compile(r"\A(?:[a-z][\w$]*\.)+(?=[A-Z][\w$.]*(?:: |\Z))")
_CODED_CLASS = re.compile(r"\A[A-Z][\w$.]*: (?=\[[A-Z])")
_CAUSE = re.compile(r"^Caused by: (.+?)(?=\n\s+at |\n\s*\.\.\. \d+ more|\nCaused by: |\Z)", re.MULTILINE | re.DOTALL)
_PLAN = re.compile(r";\n'?[A-Z]\w*\b[^\n]*(?:\Z|\n[\s:]*[+:]- )")
_CODE = re.compile(r"\[[A-Z][A-Z0-9_.]+\] ")
_PARSED = re.compile(r" ?\(line (\d+), pos (\d+)\)(?=\s*(?:\Z|\n))")
_ANALYZED = re.compile(r"; line (\d+) pos (\d+)(?:;?\s*\Z|;\n)")
_RAN = re.compile(r"^== SQL \(line (\d+), position (\d+)\) ==$", re.MULTILINE)
_TAILS = ("\n== SQL", "\n== DataFrame", "\n== JVM")
_STATE = re.compile(r"\s*SQLSTATE: (\w{5})\b")


_MORE_MEMORY = "give Spark more memory: --conf spark.driver.memory=8g"
_FREE_SPACE = "free space on the disk, and run the statement again"
_METASTORE_FAILED = "if the disk of the data directory is full, free space on it; then run the statement again"
_HINTS = {
    "OutOfMemoryError": _MORE_MEMORY,
    "Java heap space": _MORE_MEMORY,
    "No space left on device": _FREE_SPACE,
    "[SQLITE_FULL]": _FREE_SPACE,
    "[SQLITE_IOERR": _METASTORE_FAILED,
    "rolled back due to failure during commit": _METASTORE_FAILED,
    "Read-only file system": "mount it for writing, or read only",
}
"""What to do, by what the message of a machine's limit has in it."""


@dataclass(frozen=True)
class Problem:
    """An error as it is shown; `line` and `column` count from 1 within the statement, None if not known.

    `is_fatal`: no other statement can run.
    """

    message: str
    hint: str = ""
    line: int | None = None
    column: int | None = None
    sqlstate: str | None = None
    is_fatal: bool = False


def from_exception(e: BaseException) -> Problem:
    """Returns the problem that an exception of ours, of Spark's, or of neither stands for."""
    if isinstance(e, StreamqlError):
        return Problem(f"[{e.code}] {e.message}", e.hint, e.line, e.column, e.sqlstate)
    name = type(e).__name__
    if "pyspark" in type(e).__module__ or name == "Py4JJavaError":
        state = getattr(e, "getSqlState", lambda: None)()
        return from_spark(str(e), state if isinstance(state, str) else None)
    if name == "Py4JNetworkError" or isinstance(e, ConnectionError):
        hint = "if memory ran out: --conf spark.driver.memory=8g; the log: -v"
        return Problem("[INTERNAL_ERROR] Spark's Java process ended", hint, sqlstate="XX000", is_fatal=True)
    if isinstance(e, OSError):
        return Problem(f"{e.filename}: {e.strerror}" if e.filename else str(e.strerror or e))
    hint = "a fault of streamql: please report it, with what -v shows"
    return Problem(f"[INTERNAL_ERROR] {name}: {e}", hint, sqlstate="XX000")


def from_spark(text: str, sqlstate: str | None = None) -> Problem:
    """Returns what Spark's exception says, cut to the message."""
    text, _, given = _root(text.strip()).partition("\nHint: ")
    line, column = None, None
    if m := _RAN.search(text):
        line, column = int(m.group(1)), int(m.group(2))
    for tail in _TAILS:
        text = text.split(tail, 1)[0]
    if m := _ANALYZED.search(text):
        line, column = int(m.group(1)), int(m.group(2)) + 1
        text = text[: m.start()]
    elif m := _PARSED.search(text):
        line, column = int(m.group(1)), int(m.group(2)) + 1
        text = text[: m.start()] + text[m.end() :]
    if m := _PLAN.search(text):
        text = text[: m.start()]
    if m := _STATE.search(text):
        sqlstate = m.group(1)
        text = text[: m.start()] + text[m.end() :]
    hint = given.strip()
    hint = next((given for sign, given in _HINTS.items() if sign in text), hint)
    return Problem(text.strip() or "Spark gave no reason", hint, line, column, sqlstate)


def describe(problem: Problem, where: str, script_line: int, text: str) -> str:
    """Returns the problem as lines for stderr: where and what, the line at fault with a caret, SQLSTATE, hint.

    `script_line` is the line of the statement's first in its script, `text` the statement.
    """
    lines = [f"error in {where}: {problem.message}"]
    excerpt = _excerpt(problem, script_line, text)
    if excerpt:
        lines += excerpt
    if problem.sqlstate:
        lines.append(f"SQLSTATE: {problem.sqlstate}")
    if problem.hint:
        lines.append(f"hint: {problem.hint}")
    return "\n".join(lines)


def _root(text: str) -> str:
    """Returns the message without wrappers: of several causes, the last that has a code, else the last that says something."""
    text = _PY4J.sub("", text)
    head = _without_class(_TRACE.split(text, maxsplit=1)[0])
    wrapped = any(wrapper in head for wrapper in SPARK_WRAPPERS)
    if _CODE.match(head) and not wrapped:
        return head
    stripped = [_without_class(cause.strip()) for cause in _CAUSE.findall(text)]
    coded = [cause for cause in (head, *stripped) if _CODE.match(cause) and not cause.startswith(SPARK_WRAPPERS)]
    if coded:
        return coded[-1]
    if stripped and (not head or wrapped):
        return stripped[-1]
    return head or text.split("\n", 1)[0]


def _without_class(message: str) -> str:
    """Returns the message without the exception's class where there is a code, with its short name if there is none."""
    short = _CLASS.sub("", message)
    return _CODED_CLASS.sub("", short)


def _excerpt(problem: Problem, script_line: int, text: str, width_max: int = 100) -> list[str]:
    """Returns the line at fault, numbered as in the script, and a caret under the column."""
    if problem.line is None or problem.column is None:
        return []
    rows = concealed(text).split("\n")  # the statement may be refused because it holds a secret
    if problem.line > len(rows):
        return []
    row = rows[problem.line - 1].replace("\t", " ")
    column = problem.column - 1
    if not row.strip() or column > len(row):
        return []
    start = max(0, column - width_max // 2) if len(row) > width_max else 0
    label = f"{script_line + problem.line - 1:>5} | "
    shown = row[start : start + width_max]
    return [label + shown, " " * (len(label) - 2) + "| " + " " * (column - start) + "^"]
