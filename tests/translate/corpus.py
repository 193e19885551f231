"""The corpus: documented statements of other systems, and what is expected of each.

A line `-- @WORD detail` above a statement says it. Without one, the statement is translated and runs.

    -- @rows 3            the translation runs, and its last statement has that many rows
    -- @wait              the test waits for 2 seconds before, so that a point in time lies after the statements above
    -- @translated why    the statement is translated, and cannot run in a test
    -- @refused word      the statement is not translated; the word is in it or in the reason
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamql.dialect import split
from streamql.features.translate.model import Piece, System, Translation
from streamql.features.translate.script import translate

DIRECTORY = Path(__file__).parent / "corpus"
_DIRECTIVE = re.compile(r"^-- @(rows|translated|refused|wait) ?(.*)$", re.MULTILINE)
_CREATED = re.compile(r"CREATE\b[^;]*?\bSTREAM\s+(?:IF NOT EXISTS\s+)?(\w+)", re.IGNORECASE)
_ABOUT_STREAMS = r"\bSTREAMS?\b|\bCHANGES\b|METADATA\$|change\$|__change_type|SYSTEM\$STREAM|stream_status"


@dataclass(frozen=True)
class Case:
    """A statement of the corpus. `expected` is run, translated or refused; `rows` None: any number.

    `is_about_streams`: it makes, shows, changes or reads a stream, or shows changes; a task does not count.
    """

    system: System
    file: Path
    piece: Piece
    expected: str
    detail: str
    rows: int | None
    is_about_streams: bool
    waits: bool

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.file.parent.name}/{self.file.name}:{self.piece.line}: {self.piece.source[:60]}"


def files() -> list[Path]:
    """All scripts of the corpus."""
    return sorted(DIRECTORY.glob("*/*.sql"))


def translated(file: Path) -> Translation:
    """The translation of a script of the corpus."""
    return translate(file.read_text(encoding="utf-8"), System(file.parent.name))


def cases(file: Path) -> Iterator[Case]:
    """The statements of a script, in their order."""
    script = file.read_text(encoding="utf-8")
    streams = "|".join(rf"\b{name}\b" for name in _CREATED.findall(script))
    about = re.compile(f"{_ABOUT_STREAMS}|{streams}" if streams else _ABOUT_STREAMS, re.IGNORECASE)
    end = 0
    for fragment, piece in zip(split(script), translated(file).pieces, strict=True):
        found = _DIRECTIVE.findall(script[end : fragment.start])
        waits = ("wait", "") in found
        others = [pair for pair in found if pair[0] != "wait"]
        word, detail = others[-1] if others else ("run", "")
        rows = int(detail) if word == "rows" else None
        expected = "run" if word == "rows" else word
        is_about = about.search(piece.source) is not None and not re.search(r"\bTASKS?\b", piece.source, re.IGNORECASE)
        yield Case(System(file.parent.name), file, piece, expected, detail, rows, is_about, waits)
        end = fragment.start + len(fragment.text)
