"""A page as it runs: its SQL step by step, and between the steps its Python, its files and its commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.transcripts.masks import match
from tests.transcripts.script import Fence, fences

ROOT = Path(__file__).resolve().parents[2]
RUN = frozenset({"doctor", "export", "has-data", "report", "run", "streams", "translate", "watch"})
"""The commands of `streamql` that a page's are run of; of others (servers, shells) the arguments are parsed."""

DATA = "/data/"
"""The directory of a page's files, as its SQL names it."""

_EXIT = re.compile(r"\s+# exit code (\d+).*\Z")


def pages() -> list[Path]:
    """The README, the pages of docs/, and its reference of SQL: those that show something to run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "sql").glob("*.md"))]


@dataclass(frozen=True)
class Invocation:
    """`$ streamql …` of a ```console block: the words behind `streamql`, what it prints, and how it ends."""

    argv: tuple[str, ...]
    printed: tuple[str, ...]
    exit_code: int
    line: int

    @property
    def command(self) -> str | None:
        """The command's name, where it is one of RUN and asks for no help."""
        named = next((word for word in self.argv if word in RUN), None)
        return None if "--help" in self.argv else named


def others(text: str) -> Iterator[Fence]:
    """The blocks of a page that are run beside its SQL: python, console, and files, whose name stands behind `sql`, `json` or `csv`."""
    for fence in fences(text):
        words = fence.info.split()
        is_file = len(words) == 2 and (
            words[0] == "sql" or (words[0] in ("json", "csv") and words[1].endswith(f".{words[0]}"))
        )
        if words[:1] in (["python"], ["console"]) or is_file:
            yield fence


def invocations(fence: Fence) -> Iterator[Invocation]:
    """The `streamql` commands of a ```console block, each with the lines below it."""
    starts = [i for i, line in enumerate(fence.lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(fence.lines)], strict=True):
        line, code = fence.lines[start][2:], 0
        if found := _EXIT.search(line):
            line, code = line[: found.start()], int(found.group(1))
        words = shlex.split(line, comments=True)
        for i, word in enumerate(words):  # what a shell would do with the output is not the command's affair
            if word in ("|", ">", ">>", "&&", "&", ";"):
                words = words[:i]
                break
        if words[:1] == ["streamql"]:
            printed = tuple(text for text in fence.lines[start + 1 : end] if text.strip())
            yield Invocation(tuple(words[1:]), printed, code, fence.line + start)


def difference(invocation: Invocation, code: int, out: str) -> str | None:
    """What is not as the page has it; None: nothing."""
    lines = [line.rstrip() for line in out.splitlines() if line.strip()]
    if code != invocation.exit_code:
        return f"exit code {code}, not {invocation.exit_code}\n{out}"
    if invocation.printed and match("\n".join(invocation.printed), "\n".join(lines), {}) is None:
        return "expected\n" + "\n".join(invocation.printed) + "\ngot\n" + "\n".join(lines)
    return None


def in_order(blocks: list[Fence], step_lines: list[int], do: Callable[[Fence], None]) -> Iterator[int]:
    """Before each step (by its line) does the blocks that stand above it, then yields the step's index; at last those below all."""
    waiting = sorted(blocks, key=lambda block: block.line)
    for index, line in enumerate(step_lines):
        while waiting and waiting[0].line < line:
            do(waiting.pop(0))
        yield index
    for block in waiting:
        do(block)
