"""The backlog of an interval of a table, by the log alone. For files that were rewritten, the rows are upper bounds."""

from __future__ import annotations

from collections.abc import Iterable

from streamql.changes.plan import ChangePlan, Piece, PlanType
from streamql.model import Versions
from streamql.sources.protocol import Backlog

PAGE_ROWS_PER_LOST_ROW = 10
"""How many rows are read for each row that a file lost, because Parquet is read by pages: an estimate. It is about 1 if the lost rows are
neighbours, and thousands if a page has lost one row."""


def backlog(plan: ChangePlan, interval: Versions) -> Backlog:
    """Counts the rows, files and bytes that reading an interval by its plan would touch. Pure."""
    pieces = plan.inserted + plan.pieces
    added = _rows(p for p in pieces if p.weight > 0)
    removed = _rows(p for p in pieces if p.weight < 0)
    size = sum(int(p.file.action.get("size", 0)) for p in pieces)
    versions = interval.through - interval.after
    return Backlog(
        versions, added, removed, len({p.file.path for p in pieces}), size, plan.type is not PlanType.NOTHING
    )


def bytes_read(plan: ChangePlan) -> int:
    """Estimates how many bytes a change set reads. Of a file that lost some rows, it reads only the pages of these rows. Pure."""
    return sum(_bytes(piece) for piece in plan.inserted + plan.pieces)


def _bytes(piece: Piece) -> int:
    size, rows = int(piece.file.action.get("size", 0)), piece.file.rows
    if piece.other is None or not rows:
        return size
    lost = max(0, piece.other.deleted_rows - piece.file.deleted_rows)
    return min(size, size * lost * PAGE_ROWS_PER_LOST_ROW // rows)


def _rows(pieces: Iterable[Piece]) -> int | None:
    """Counts the rows of pieces of files by the files' statistics. None: a file has no statistics."""
    total = 0
    for piece in pieces:
        rows = piece.file.rows
        if piece.other is not None:
            rows = max(0, piece.other.deleted_rows - piece.file.deleted_rows)
        if rows is None:
            return None
        total += rows
    return total
