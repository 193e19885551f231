"""CREATE, ALTER and DROP of streams. Each statement is one commit of the catalog."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.events import stream_event
from streamql.catalog.identity import user_of
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.consume import (
    Change,
    force_release,
    session_transactions,
    wait_until_free,
    warn_of_release,
    with_others_advanced,
)
from streamql.delta.names import look_up, qualify, schema_exists
from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.statements import (
    AlterStream,
    CreateStream,
    DropStream,
    PointInTime,
    Release,
    SetIdentity,
    SetOffset,
    StreamAction,
)
from streamql.dialect.text.tokens import Span
from streamql.engine.left_behind import left_behind
from streamql.engine.points import offset_at
from streamql.engine.reads import find_stream, identified_as, named_source, need_stream, with_article
from streamql.errors import StreamqlError
from streamql.model import Interval, Offset, Stream, StreamMode
from streamql.names import Name
from streamql.sources.definitions import Definition
from streamql.sources.protocol import OpenSource
from streamql.sources.registry import open_source, type_of
from streamql.terms import altered
from streamql.times import now_ms

log = logging.getLogger("streamql")

ATTEMPTS_MAX = 20
"""How often a commit is tried again after other processes have changed the stream in between."""


def create_stream(spark: SparkSession, statement: CreateStream, text: str) -> None:
    """Creates a stream. Raises STREAM_ALREADY_EXISTS, NAME_ALREADY_IN_USE, TABLE_NOT_FOUND, CHANGE_TRACKING_DISABLED, and others."""
    name = qualify(spark, statement.name)
    catalog = catalog_of(spark)
    for _ in range(ATTEMPTS_MAX):
        old = catalog.find(spark, name)
        if old is not None and statement.if_not_exists:
            return
        if old is not None and not statement.or_replace:
            raise StreamqlError(
                "STREAM_ALREADY_EXISTS",
                f"stream {name} exists",
                hint="CREATE OR REPLACE STREAM, or CREATE STREAM IF NOT EXISTS",
                **place_of(statement.name_span),
            )
        now, user = now_ms(), user_of(spark)
        if old is None:
            check_free(spark, name, statement.name_span)
            state = _new_state(spark, statement, name, text)
            if catalog.commit(spark, [], [state], [stream_event("created", state, now, user, text)]):
                return
            continue
        session_transactions.refuse_own(spark, old)
        _new_state(spark, statement, name, text)  # raises the statement's own errors before it waits for the old stream
        last = force_release(spark, old)
        state, gone = _new_state(spark, statement, name, text), _of(last, old).next()
        events = [stream_event("replaced", state, now, user, text), stream_event("dropped", gone, now, user, text)]
        lost = left_behind(spark, _of(last, old), state)
        if _commit(spark, last, old, state, events):
            if lost is not None:
                log.warning("CREATE OR REPLACE STREAM: %s", lost)
            return
    raise _contended(name)


def _new_state(spark: SparkSession, statement: CreateStream, name: Name, text: str) -> StreamState:
    source, mode = _trackable(spark, statement)
    named = Offset(source.latest) if statement.point is None else offset_at(spark, source, statement.point)
    source.check_start(named)
    offset = type_of(source.ref).start(source, named, statement.show_initial_rows)
    stream = Stream(
        uuid=str(uuid.uuid4()),
        name=name,
        source=source.ref,
        mode=mode,
        show_initial_rows=statement.show_initial_rows,
        comment=statement.comment,
        created_at_ms=now_ms(),
        created_by=user_of(spark),
        definition=text.strip().rstrip(";").strip(),
    )
    state = StreamState(stream, offset, sequence=1)
    for clause in statement.clauses:
        state = replace(state, stream=altered(spark, state, clause, is_created=True))
    return state


def _trackable(spark: SparkSession, statement: CreateStream) -> tuple[OpenSource, StreamMode]:
    """Returns the opened source, if a stream can be created on it, and the stream's mode."""
    where = place_of(statement.source_span)
    name = qualify(spark, statement.source)
    found = named_source(spark, name, where.get("line"), where.get("column"))
    type_ = type_of(found)
    if statement.source_type not in type_.statement_types:
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"{name} is not {with_article(statement.source_type)}",
            hint=f"CREATE STREAM {'.'.join(statement.name)} ON {type_.label} {name}",
            **where,
        )
    source = open_source(spark, identified_as(spark, found, statement.identity, where))
    mode = statement.mode or type_.default_mode
    source.check_trackable(mode, where)
    return source, mode


def check_free(spark: SparkSession, name: Name, span: Span | None) -> None:
    """Raises SCHEMA_NOT_FOUND, and NAME_ALREADY_IN_USE if a table, a view or a definition has the name."""
    if not schema_exists(spark, name.catalog, name.schema):
        raise StreamqlError(
            "SCHEMA_NOT_FOUND",
            f"there is no schema {name.schema}",
            hint=f"CREATE SCHEMA {name.schema}",
            **place_of(span),
        )
    definition = catalog_of(spark).definition(spark, name)
    if definition is not None or look_up(spark, name).type != "missing":
        what = "a table or view" if definition is None else with_article(definition.type.value)
        raise StreamqlError(
            "NAME_ALREADY_IN_USE", f"{name} is {what}", hint="choose another name", name=str(name), **place_of(span)
        )


def check_free_of_streams(spark: SparkSession, name: Name, where: Mapping[str, int]) -> None:
    """Raises NAME_ALREADY_IN_USE if a stream has the name."""
    if catalog_of(spark).find(spark, name) is not None:
        raise StreamqlError("NAME_ALREADY_IN_USE", f"{name} is a stream", hint="choose another name", **where)


def definition_exists(definition: Definition, where: Mapping[str, int]) -> StreamqlError:
    """Returns the error for a CREATE of a definition that exists already."""
    label = definition.type.value.upper()
    return StreamqlError(
        "NAME_ALREADY_IN_USE",
        f"the {definition.type.value} {definition.name} exists",
        hint=f"CREATE OR REPLACE {label}, or CREATE {label} IF NOT EXISTS",
        **where,
    )


def drop_stream(spark: SparkSession, statement: DropStream, text: str) -> None:
    """Drops a stream, or removes the name of one whose entry is damaged. Its rows in the ledger stay. Raises STREAM_NOT_FOUND,
    STREAM_BUSY."""
    if _discarded(spark, statement.name):
        return
    if statement.if_exists and find_stream(spark, statement.name) is None:
        return
    for _ in range(ATTEMPTS_MAX):
        found = need_stream(spark, statement.name, **place_of(statement.name_span))
        session_transactions.refuse_own(spark, found)
        last = force_release(spark, found)
        gone = _of(last, found).next()
        lost = left_behind(spark, gone, None)
        if _commit(spark, last, found, None, [stream_event("dropped", gone, now_ms(), user_of(spark), text)]):
            if lost is not None:
                log.warning("DROP STREAM: %s", lost)
            return
    raise _contended(found.name)


def _discarded(spark: SparkSession, parts: tuple[str, ...]) -> bool:
    """Removes a broken name (`Contents.without`). Returns whether it was broken."""
    try:
        name = qualify(spark, parts)
    except StreamqlError:  # the parts are not a name
        return False
    return catalog_of(spark).discard(spark, name)


def alter_stream(spark: SparkSession, statement: AlterStream, text: str) -> None:
    """Changes the comment, name or offset of a stream, or releases it. Raises STREAM_NOT_FOUND, STREAM_BUSY, and for offsets what creation
    raises."""
    if statement.if_exists and find_stream(spark, statement.name) is None:
        return
    for _ in range(ATTEMPTS_MAX):
        found = need_stream(spark, statement.name, **place_of(statement.name_span))
        session_transactions.refuse_own(spark, found)
        _altered(spark, found, statement)  # raises the statement's own errors before it waits for the stream
        if isinstance(statement.action, SetOffset | Release):
            last = force_release(spark, found)
        else:
            free = wait_until_free(spark, found)
            last = Change([free], [free])
        event, new = _altered(spark, _of(last, found), statement)
        changed = [(event, new)]
        if isinstance(statement.action, SetOffset) and is_version(statement.action.point):
            freed, last = last, with_others_advanced(last, new)
            changed += [(event, s) for s in last.after if s not in freed.after]
        events = [stream_event(e, s, now_ms(), user_of(spark), text) for e, s in changed]
        moved = _moved(spark, _of(last, found), new) if isinstance(statement.action, SetOffset) else None
        if _commit(spark, last, found, new, events):
            if moved is not None:
                log.warning("%s", moved)
            return
    raise _contended(found.name)


def _moved(spark: SparkSession, before: StreamState, after: StreamState) -> str | None:
    """Returns a text that says what SET OFFSET skips, or shows again; None: there is nothing."""
    source = open_source(spark, after.stream.source)
    return source.describe_move(after.name, after.stream.mode, before.offset, after.offset)


def is_version(point: PointInTime | None) -> bool:
    """Returns whether the statement names a version or positions, and not a time or the latest version."""
    return point is not None and point.type in ("VERSION", "POSITIONS") and not point.before


def _of(last: Change, state: StreamState) -> StreamState:
    """Returns a stream as it is after the change `last`, which ends a consumption that is given up."""
    return next(s for s in last.after if s.stream.uuid == state.stream.uuid)


def _commit(
    spark: SparkSession,
    last: Change,
    old: StreamState,
    new: StreamState | None,
    events: Sequence[Mapping[str, Any]],
) -> bool:
    """Commits the change `last`, which ends a given-up consumption if there is one, together with the new state of a stream (None: it is
    dropped). Returns False if another process has changed one of the streams: the caller reads them again."""
    others = [s for s in last.after if s.stream.uuid != old.stream.uuid]
    is_done = catalog_of(spark).commit(spark, last.before, [*others, new], [*last.events, *events])
    if is_done:
        warn_of_release(last, old.stream.uuid)
    return is_done


def _altered(spark: SparkSession, state: StreamState, statement: AlterStream) -> tuple[str, StreamState]:
    action = statement.action
    if isinstance(action, SetComment):
        return "altered", state.next(stream=replace(state.stream, comment=action.comment))
    if isinstance(action, RenameTo):
        parts = action.name if len(action.name) > 1 else (state.name.catalog, state.name.schema, *action.name)
        name = qualify(spark, parts)
        if catalog_of(spark).find(spark, name) is not None:
            raise StreamqlError("STREAM_ALREADY_EXISTS", f"stream {name} exists", hint="choose another name")
        check_free(spark, name, None)
        return "renamed", state.next(stream=replace(state.stream, name=name))
    if isinstance(action, Release):
        return "given_up", state.next()
    if isinstance(action, StreamAction):
        return "altered", state.next(stream=altered(spark, state, action))
    if isinstance(action, SetIdentity):
        source = open_source(spark, identified_as(spark, state.stream.source, action.identity, {}))
        source.check_history(state.offset, state.stream.source, state.name)
        source.check_start(state.offset)
        pending = Interval(state.offset.position, source.latest, state.offset.initial)
        if not pending.is_empty:  # it must be readable by the new identity; no job runs
            source.changes(pending, state.stream.mode)
        return "altered", state.next(stream=replace(state.stream, source=source.ref))
    assert isinstance(action, SetOffset)
    source = open_source(spark, state.stream.source)
    offset = Offset(source.latest) if action.point is None else offset_at(spark, source, action.point, state)
    source.check_start(offset)
    sequence = catalog_of(spark).number_of(state)
    stream = replace(state.stream, source=source.ref)
    return "set_offset", replace(state, stream=stream, offset=offset, sequence=sequence + 1)


def place_of(span: Span | None) -> dict[str, int]:
    """Returns the line and column of a place as keyword arguments of an error; empty if the place is not known."""
    return {} if span is None else {"line": span.line, "column": span.column}


def _contended(name: Name) -> StreamqlError:
    return StreamqlError(
        "STREAM_BUSY", f"others keep changing stream {name}", hint="run the statement again", name=str(name)
    )
