"""From the text of a transcript to its steps: statements, each with the lines of its expected result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from streamql.dialect import split
from streamql.dialect.text.splitting import Fragment
from tests.transcripts.topics import Action, parse_action

ERROR_START = "ERROR ["
WARNING_START = "WARNING "
FIRST_CONNECTION = "a"

LINES = ("spark", "delta")
"""The directives that name a line of Spark or of Delta Lake."""

_DIRECTIVE = re.compile(r"--\s*@(\w+)\s*(.*?)\s*\Z")
_TIMES_AS_WRITTEN = ("times", "as written")


class TranscriptError(Exception):
    """A transcript that cannot be read, or a directive that does not exist."""


@dataclass(frozen=True)
class Step:
    """A statement, where it starts (line from 1), who runs it, and its expected result.

    `block` is empty where the transcript shows no result; it stands, or would stand, at `lines[block_at:]` of the file. `action`: what a
    directive does to a topic in place of a statement; `text` is the directive then. `needs`: the first lines that run the statement, of
    Spark or of Delta Lake, such as ("spark", (4, 2)).
    """

    text: str
    line: int
    connection: str
    block: tuple[str, ...]
    block_at: int
    action: Action | None = None
    needs: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Transcript:
    """A file of sql/. `times_as_written`: equal times in the file stand for equal times, earlier ones for earlier ones."""

    path: Path
    lines: tuple[str, ...]
    steps: tuple[Step, ...]
    times_as_written: bool


def read(path: Path) -> Transcript:
    """The transcript in a file: a .slt, or the ```sql blocks of a page of Markdown. Raises TranscriptError."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        return parse(path, text)
    return replace(parse(path, sql_of(text)), lines=tuple(text.splitlines()))


@dataclass(frozen=True)
class Fence:
    """A fenced block of Markdown: the words behind its ```, its lines, and the line (from 1) that the first of them is."""

    info: str
    lines: tuple[str, ...]
    line: int


def fences(text: str) -> list[Fence]:
    """The fenced blocks of a page, those in HTML comments too, which are run and not shown. Raises TranscriptError for one that does
    not end."""
    found, opened, kept = [], None, []
    for number, line in enumerate(text.splitlines(), 1):
        if opened is None and line.startswith("```"):
            opened, kept = (line[3:].strip(), number + 1), []
        elif opened is not None and line.startswith("```"):
            found.append(Fence(opened[0], tuple(kept), opened[1]))
            opened = None
        elif opened is not None:
            kept.append(line)
    if opened is not None:
        raise TranscriptError(f"line {opened[1] - 1}: the block does not end")
    return found


def sql_of(text: str) -> str:
    """The text with all lines blank but those of ```sql blocks, so that lines keep their numbers."""
    lines = [""] * len(text.splitlines())
    for fence in fences(text):
        if fence.info == "sql":
            lines[fence.line - 1 : fence.line - 1 + len(fence.lines)] = fence.lines
    return "\n".join(lines)


def parse(path: Path, text: str) -> Transcript:
    """The transcript that a text is. Raises TranscriptError for what does not end, and for unknown directives."""
    lines = text.splitlines()
    directives = list(_directives(path, lines))
    connections = [(number, value) for number, name, value in directives if name == "connection"]
    steps = [
        Step(f"-- @{name} {value}", number, FIRST_CONNECTION, (), number, action)
        for number, name, value in directives
        if (action := parse_action(name, value)) is not None
    ]
    for fragment, block_at, block in _fragments(path, lines):
        connection = next((c for number, c in reversed(connections) if number < fragment.line), FIRST_CONNECTION)
        needs = tuple((name, parse_line(v)) for n, name, v in directives if name in LINES and n == fragment.line - 1)
        steps.append(Step(fragment.text, fragment.line, connection, block, block_at, needs=needs))
    as_written = any((name, value) == _TIMES_AS_WRITTEN for _, name, value in directives)
    return Transcript(path, tuple(lines), tuple(sorted(steps, key=lambda step: step.line)), as_written)


def parse_line(value: str) -> tuple[int, ...]:
    """The line that `-- @spark 4.2` or `-- @delta 4.4` names, for the statement below it; () for anything else."""
    return tuple(map(int, value.split("."))) if re.fullmatch(r"\d+\.\d+", value) else ()


def _directives(path: Path, lines: list[str]) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines, 1):
        found = _DIRECTIVE.match(line)
        if found is None:
            continue
        name, value = found.groups()
        is_known = (
            (name, value) == _TIMES_AS_WRITTEN
            or (name == "connection" and value)
            or (name in LINES and parse_line(value))
            or parse_action(name, value)
        )
        if not is_known:
            raise TranscriptError(f"{path.name}:{number}: no such directive: @{name} {value}")
        yield number, name, value


def _fragments(path: Path, lines: list[str]) -> Iterator[tuple[Fragment, int, tuple[str, ...]]]:
    """Each statement with the place and the lines of its result."""
    first, at = 0, 0
    while at <= len(lines):
        is_end = at == len(lines)
        if not is_end and not _starts_block(lines[at]):
            at += 1
            continue
        fragments = split("\n".join(lines[first:at]))
        if fragments and not fragments[-1].terminated:
            if is_end:
                raise TranscriptError(f"{path.name}:{first + fragments[-1].line}: the statement is never closed with ;")
            at += 1  # a line of the statement itself
            continue
        end = _block_end(lines, at)
        if end > at and not fragments:
            raise TranscriptError(f"{path.name}:{at + 1}: a result without a statement before it")
        for fragment in fragments:
            moved = Fragment(fragment.text, first + fragment.line)
            is_last = fragment is fragments[-1]
            block = tuple(lines[at:end]) if is_last else ()
            yield moved, at if block else _after(lines, moved), block
        first = at = max(end, at + 1)


def _starts_block(line: str) -> bool:
    return line.startswith(("+-", ERROR_START, WARNING_START))


def _block_end(lines: list[str], start: int) -> int:
    end = start
    while end < len(lines) and lines[end].startswith(WARNING_START):
        end += 1
    if end < len(lines) and lines[end].startswith(ERROR_START):
        while end < len(lines) and lines[end].strip() and not lines[end].startswith("--"):
            end += 1
    else:
        while end < len(lines) and lines[end].startswith(("+", "|")):
            end += 1
    return end


def _after(lines: list[str], fragment: Fragment) -> int:
    """The index of the line behind the statement's semicolon."""
    index = fragment.line - 1 + fragment.text.count("\n")
    while index < len(lines) and ";" not in lines[index]:
        index += 1
    return index + 1
