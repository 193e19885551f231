"""What a statement did, in one line: the rows it changed, where, and which streams moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from streamql.console.render.formats import text_of
from streamql.console.sql.result_types import ResultType
from streamql.dialect import might_be_ours, parse
from streamql.errors import StreamqlError, counted
from streamql.sources.protocol import HIDDEN_SUFFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamql.console.sql.session import Done
    from streamql.consume.effects import Effect, Move, Write


_SCRIPTS = ("BEGIN", "EXECUTE")
_OPERATIONS = {"CTAS": "CREATE", "RTAS": "CREATE", "REPLACE": "REPLACE"}
"""The ledger's names of statements, by the keyword that they begin with."""


def summarize(verb: str, result_type: ResultType, frame: DataFrame, done: Done, database: str) -> str:
    """Returns what a statement did that is not a query; empty if nothing is known of it. Names in `database` are shown without it."""
    facts = _facts(result_type, frame)
    if any(effect.writes or effect.is_skipped for effect in done.effects):
        return "\n".join(_consumed(effect, verb, _parts(facts), database) for effect in done.effects)
    said = _SUMMARIES.get(verb, _changed)(verb, facts)
    if not said and done.rows is not None:
        said = f"{verb}: {counted(done.rows, 'row')} inserted"
    moves = moved(done.effects, database)
    return f"{said or verb}{'; ' if said else ': '}{moves}" if moves else said


def note_on(text: str) -> str:
    """Returns what the user reads once a statement of ours has run; empty: nothing."""
    try:
        statement = parse(text) if might_be_ours(text) else None
    except StreamqlError:  # a variable of Spark's in it, say
        return ""
    return "" if statement is None else statement.note


def moved(effects: Sequence[Effect], database: str) -> str:
    """Returns the streams that moved, as "orders_stream 4 → 7"; empty if none was read. Hidden streams of dynamic tables are left out."""
    return ", ".join(
        _move(move, effect.is_open, database)
        for effect in effects
        for move in effect.moves
        if _refreshed(move.stream) is None
    )


def _refreshed(stream: str) -> str | None:
    """Returns the dynamic table that a hidden stream refreshes. None: the stream is not a hidden one."""
    schema, _, name = stream.rpartition(".")
    table = name.strip("`").removesuffix(HIDDEN_SUFFIX)
    return None if table == name.strip("`") else f"{schema}.{table}"


def _consumed(effect: Effect, verb: str, parts: str, database: str) -> str:
    """INSERT: 3 rows into orders_copy; orders_stream 4 → 7. `verb`: of the statement; a script's statements have their own."""
    if effect.is_skipped:
        return f"{verb}: skipped, since an earlier run of the transaction did it"
    tables = [table for move in effect.moves if (table := _refreshed(move.stream)) is not None]
    writes = (
        ", ".join(_write(write, tables[0] if tables else write.target, database) for write in effect.writes) + parts
    )
    if verb in _SCRIPTS and effect.writes:
        verb = _OPERATIONS.get(effect.writes[0].operation, effect.writes[0].operation)
    return f"{verb}: " + "; ".join(part for part in (writes, moved([effect], database)) if part)


def _write(write: Write, target: str, database: str) -> str:
    rows = "rows" if write.rows is None else counted(write.rows, "row")
    return f"{rows} into {_short(target, database)}"


def _move(move: Move, is_open: bool, database: str) -> str:
    name = _short(move.stream, database)
    if move.after == move.through and not move.initial:
        return f"{name} stays at {move.through}"
    rest = " with its initial rows" if move.initial else ""
    return f"{name} {move.after} → {move.through}{rest}{' at COMMIT' if is_open else ''}"


def _short(name: str, database: str) -> str:
    """Returns a name without the session catalog, and without the current database."""
    return name.removeprefix("spark_catalog.").removeprefix(f"{database}.")


def _facts(result_type: ResultType, frame: DataFrame) -> dict[str, object]:
    """Returns the counts that Spark answers, by name; none if the statement's result is rows for a reader."""
    names = frame.columns
    if not names or result_type not in (ResultType.DML, ResultType.COMMAND):
        return {}
    row = frame.first()
    return {} if row is None else dict(zip(names, row, strict=True))


def _changed(verb: str, facts: dict[str, object]) -> str:
    """MERGE: 5 rows affected (0 updated, 2 deleted, 3 inserted)."""
    affected = facts.get("num_affected_rows")
    return f"{verb}: {counted(affected, 'row')} affected{_parts(facts)}" if isinstance(affected, int) else ""


def _parts(facts: dict[str, object]) -> str:
    """In parentheses, what the affected rows consist of; empty if they are of one type."""
    parts = [
        f"{text_of(v)} {k[4:-5].replace('_', ' ')}"
        for k, v in facts.items()
        if k.endswith("_rows") and k != "num_affected_rows" and v is not None
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _optimized(verb: str, facts: dict[str, object]) -> str:
    metrics = facts.get("metrics")
    added, removed = getattr(metrics, "numFilesAdded", None), getattr(metrics, "numFilesRemoved", None)
    return f"{verb}: {counted(removed, 'file')} rewritten as {added}" if isinstance(removed, int) else ""


def _restored(verb: str, facts: dict[str, object]) -> str:
    removed, restored = facts.get("num_removed_files"), facts.get("num_restored_files")
    return f"{verb}: {counted(removed, 'file')} removed, {restored} restored" if isinstance(removed, int) else ""


def _refreshed_none(verb: str, facts: dict[str, object]) -> str:
    """REFRESH: nothing to do, the sources have not changed. Empty for Spark's own REFRESH TABLE."""
    return f"{verb}: nothing to do, the sources have not changed" if facts.get("outcome") == "UNCHANGED" else ""


_SUMMARIES: dict[str, Callable[[str, dict[str, object]], str]] = {
    "OPTIMIZE": _optimized,
    "RESTORE": _restored,
    "REFRESH": _refreshed_none,
}
