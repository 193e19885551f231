"""The warning for a stream that is dropped or replaced: the changes that it has not consumed, and the statement that restores its
offset."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.delta.jvm import sentence
from streamql.dialect import quote_string
from streamql.model import Offset, SourceRef, StreamMode, is_ordered, offset_clause, parts_or_none
from streamql.reading import check_history
from streamql.sources.registry import open_source, type_of

log = logging.getLogger("streamql")


def left_behind(spark: SparkSession, state: StreamState, replacement: StreamState | None) -> str | None:
    """Returns a text that says which changes of a stream no statement has consumed, and how to restore its offset. `replacement`: the
    stream that replaces it; None: it is dropped. Returns None if there are no such changes, or if its source cannot be read."""
    try:
        source = open_source(spark, state.stream.source)
        check_history(state, source)
        is_same = replacement is not None and _is_same(replacement.stream.source, source.ref)
        end = replacement.offset if replacement is not None and is_same else Offset(source.latest)
        if not is_ordered(state.offset.position, end.position):
            return None
        skipped = source.describe_move(state.name, state.stream.mode, state.offset, end)
    except Exception as e:  # a stream must be droppable even if its source is missing or broken
        log.debug("what stream %s leaves behind is not known: %s", state.name, sentence(e))
        return None
    if skipped is None:
        return None
    has_same_mode = replacement is not None and replacement.stream.mode is state.stream.mode
    if is_same and has_same_mode and not state.offset.initial:
        back = f"ALTER STREAM {state.name} SET OFFSET {offset_clause(state.offset.position)}"
    else:
        back = _statement(state, "CREATE STREAM" if replacement is None else "CREATE OR REPLACE STREAM")
    return f"{skipped}. No statement has consumed these changes. To bring the offset back: {back}"


def _is_same(source: SourceRef, other: SourceRef) -> bool:
    """Returns whether two references mean one source, and recognize its rows alike."""
    return source.identity == other.identity and source.type_name == other.type_name


def _statement(state: StreamState, create: str) -> str:
    """Returns the statement that creates the stream again at its offset."""
    stream, position = state.stream, state.offset.position
    type_ = type_of(stream.source)
    clauses = [f"{create} {stream.name} ON {type_.label} {stream.source.name}"]
    parts = parts_or_none(position)
    if parts is None:
        clauses.append(f"AT (VERSION => {position})")
    elif parts != "{}":  # no clause for an empty position, which is the begin of a topic
        clauses.append(f"AT (OFFSET => {quote_string(parts)})")
    if stream.mode is not type_.default_mode:
        clauses.append(f"APPEND_ONLY = {str(stream.mode is StreamMode.APPEND_ONLY).upper()}")
    if type_.identity not in ("", "ROW_ID"):
        clauses.append(f"IDENTITY = {type_.identity}")
    if state.offset.initial:
        clauses.append("SHOW_INITIAL_ROWS = TRUE")
    return " ".join(clauses)
