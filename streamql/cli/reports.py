"""What a statement that is no query did, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from streamql.cli.formats import text_of
from streamql.cli.kinds import Kind
from streamql.cli.words import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def report(verb: str, kind: Kind, frame: DataFrame) -> str:
    """The line; empty where Spark does not say."""
    names = frame.columns
    if not names or kind not in (Kind.DML, Kind.COMMAND):
        return ""
    row = frame.first()
    if row is None:
        return ""
    facts: dict[str, object] = dict(zip(names, row, strict=True))
    return _REPORTS.get(verb, _changed)(verb, facts)


def _changed(verb: str, facts: dict[str, object]) -> str:
    """MERGE: 5 rows affected (0 updated, 2 deleted, 3 inserted)."""
    affected = facts.pop("num_affected_rows", None)
    if not isinstance(affected, int):
        return ""
    parts = [
        f"{text_of(v)} {k[4:-5].replace('_', ' ')}" for k, v in facts.items() if k.endswith("_rows") and v is not None
    ]
    return f"{verb}: {counted(affected, 'row')} affected" + (f" ({', '.join(parts)})" if parts else "")


def _optimized(verb: str, facts: dict[str, object]) -> str:
    metrics = facts.get("metrics")
    added, removed = getattr(metrics, "numFilesAdded", None), getattr(metrics, "numFilesRemoved", None)
    return f"{verb}: {counted(removed, 'file')} rewritten as {added}" if isinstance(removed, int) else ""


def _restored(verb: str, facts: dict[str, object]) -> str:
    removed, restored = facts.get("num_removed_files"), facts.get("num_restored_files")
    return f"{verb}: {counted(removed, 'file')} removed, {restored} restored" if isinstance(removed, int) else ""


_REPORTS: dict[str, Callable[[str, dict[str, object]], str]] = {"OPTIMIZE": _optimized, "RESTORE": _restored}
