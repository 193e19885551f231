"""Results as the framed tables that people see, and back."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_COUNTED = re.compile(r"-?\d+(?:\.\d+)?\Z")


@dataclass(frozen=True)
class Table:
    """A header and rows of text; NULL stands for NULL."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def parse_table(lines: Sequence[str]) -> Table | None:
    """The table that the lines draw; None where they are none. Frames need not fit, as those of documents often do not."""
    cells = [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines if line[:1] == "|"]
    if not cells or any(len(row) != len(cells[0]) for row in cells):
        return None
    return Table(cells[0], tuple(cells[1:]))


def tables_in(text: str) -> list[Table]:
    """All tables in an output, one below the other; a table without rows may end in one rule or in two."""
    lines = [line.strip() for line in text.splitlines()]
    tables, at = [], 0
    while at < len(lines):
        if not (_is_rule(lines, at) and _is_row(lines, at + 1) and _is_rule(lines, at + 2)):
            at += 1
            continue
        end = at + 3
        while _is_row(lines, end):
            end += 1
        table = parse_table(lines[at:end])
        tables += [table] if table is not None else []
        has_frame_below = _is_rule(lines, end) and (end > at + 3 or not _is_row(lines, end + 1))
        at = end + has_frame_below
    return tables


def _is_row(lines: Sequence[str], index: int) -> bool:
    return index < len(lines) and lines[index].startswith("|")


def _is_rule(lines: Sequence[str], index: int) -> bool:
    return index < len(lines) and lines[index].startswith("+-")


def render(table: Table) -> list[str]:
    """The lines of a table."""
    widths = [max(map(_width, column)) for column in zip(table.header, *table.rows, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    rows = [_line(row, widths) for row in table.rows]
    return [rule, _line(table.header, widths), rule, *rows, *([rule] if rows else [])]


_CHANGE_NAMES = {"UPDATE_BEFORE": "UPDATE", "UPDATE_AFTER": "UPDATE, then"}
"""What was, then what is."""


def ordered(table: Table) -> Table:
    """The rows in an order that runs share: by the first of the source's columns, which identify a row for people."""
    metadata = sum(name.startswith("__") for name in table.header)

    def key(row: tuple[str, ...]) -> list[tuple[int, float, str]]:
        change = _CHANGE_NAMES.get(row[0], row[0])
        cells = (*row[metadata : metadata + 1], change, *row[1:metadata], *row[metadata + 1 :])
        return [_sortable(cell) for cell in cells]

    return Table(table.header, tuple(sorted(table.rows, key=key)))


def _sortable(cell: str) -> tuple[int, float, str]:
    return (0, float(cell), "") if _COUNTED.match(cell) else (1, 0.0, cell)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (f" {cell}{' ' * (width - _width(cell))} " for cell, width in zip(cells, widths, strict=True))
    return "|" + "|".join(padded) + "|"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
