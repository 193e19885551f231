"""Changes to a text by offsets: the rest of it stays as written, word for word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Splice:
    """Put `text` in the place of the characters [start, end)."""

    start: int
    end: int
    text: str


def apply(text: str, splices: Iterable[Splice]) -> str:
    """Returns the text with all splices made. One inside the piece of an earlier one is dropped: that piece is gone."""
    pieces: list[str] = []
    position = 0
    for splice in sorted(splices):
        if splice.start < position:
            continue
        pieces += (text[position : splice.start], splice.text)
        position = splice.end
    return "".join((*pieces, text[position:]))
