"""CREATE, ALTER and DROP of dynamic tables and materialized views."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.definitions import Entry
from streamql.catalog.events import stream_event
from streamql.catalog.identity import user_of
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.changes.schema import check_names
from streamql.consume import force_release, transactions
from streamql.delta.names import SESSION_CATALOG, qualify
from streamql.delta.neutral import dynamic_session
from streamql.delta.whole import query_properties
from streamql.dialect.dynamic.statements import (
    AlterDynamicTable,
    CreateDynamicTable,
    DropDynamicTable,
    Resume,
    SetRefreshMode,
    SetSchedule,
    Suspend,
)
from streamql.dialect.dynamic.statements import Schedule as WrittenSchedule
from streamql.dialect.statements import PointInTime, RenameTo, SetComment
from streamql.engine.ddl import ATTEMPTS_MAX, check_free, place_of
from streamql.engine.dynamic.graph import in_order
from streamql.engine.dynamic.run import reads_of, refresh_created
from streamql.engine.dynamic.tables import (
    comments_of,
    drop_parts,
    is_left_over,
    make_backing,
    make_view,
    mark_of,
    need_dynamic,
    with_names,
)
from streamql.engine.points import time_of
from streamql.errors import StreamqlError
from streamql.model import Offset, Parts, Stream, StreamMode, TableSource
from streamql.names import Name
from streamql.shared import constants
from streamql.sources.definitions import Definition, DefinitionType
from streamql.sources.dynamic import BACKING_PREFIX, DynamicTable, Schedule, all_dynamic, find_dynamic
from streamql.sources.protocol import HIDDEN_TYPE
from streamql.sources.query import QuerySource
from streamql.sources.refresh import analysed, part_of
from streamql.sources.table import open_table
from streamql.times import now_ms

log = logging.getLogger("streamql")

KEY_PREFIX = constants("dynamicTables")["keyPrefix"]


def create_dynamic(spark: SparkSession, statement: CreateDynamicTable, text: str) -> None:
    """Makes a dynamic table or a materialized view, and fills it unless the statement says otherwise. Raises NAME_ALREADY_IN_USE,
    SCHEMA_NOT_FOUND, UNSUPPORTED_SOURCE, UNSUPPORTED_CLAUSE, CHANGE_TRACKING_DISABLED, RESERVED_COLUMN_NAME, what Spark says of the query,
    and what the refresh raises: then nothing is left of the table."""
    transactions.refuse_in_block(spark, f"CREATE {_label(statement)}")
    name, where = qualify(spark, statement.name), place_of(statement.name_span)
    old = find_dynamic(spark, name)
    if old is not None and statement.if_not_exists:
        return
    if old is not None and not statement.or_replace:
        raise StreamqlError(
            "NAME_ALREADY_IN_USE",
            f"the {old.definition.type.value} {name} exists",
            hint=f"CREATE OR REPLACE {old.label}, or CREATE {old.label} IF NOT EXISTS",
            **where,
        )
    if old is None:
        _check_name(spark, statement, name)
    for clause in statement.unused:
        log.warning("%s has no effect: refreshes run in the session that asks for them", clause)
    made, state = _planned(spark, statement, name, text)
    if old is not None:
        _check_cycle(spark, old, state, statement)
    comments, old_comments = dict(statement.columns), {} if old is None else comments_of(spark, old)
    made = replace(made, backing=make_backing(spark, made, statement))
    try:
        make_view(spark, made, comments, replace=old is not None)
        _register(spark, old, made, state, text)
    except BaseException:
        if old is not None:
            make_view(spark, old, old_comments, replace=True)
        drop_parts(spark, made)
        raise
    if old is not None:
        drop_parts(spark, old, view=False)
    if statement.is_initialized:
        try:
            refresh_created(spark, made)
        except BaseException:
            _drop(spark, made, text)
            raise


def _label(statement: CreateDynamicTable | DropDynamicTable | AlterDynamicTable) -> str:
    return "MATERIALIZED VIEW" if statement.is_materialized_view else "DYNAMIC TABLE"


def _check_name(spark: SparkSession, statement: CreateDynamicTable, name: Name) -> None:
    where = place_of(statement.name_span)
    if name.catalog != SESSION_CATALOG:
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            f"a {_label(statement).lower()} is in {SESSION_CATALOG}, and {name} is not: the catalog {name.catalog} has no views",
            hint=f"CREATE {_label(statement)} {SESSION_CATALOG}.schema.{name.object}",
            **where,
        )
    if catalog_of(spark).find(spark, name) is not None:
        raise StreamqlError("NAME_ALREADY_IN_USE", f"{name} is a stream", hint="choose another name", **where)
    _drop_left_over(spark, name)
    check_free(spark, name, statement.name_span)


def _drop_left_over(spark: SparkSession, name: Name) -> None:
    if is_left_over(spark, name):
        dynamic_session(spark).sql(f"DROP VIEW IF EXISTS {name.sql}")


def _planned(
    spark: SparkSession, statement: CreateDynamicTable, name: Name, text: str
) -> tuple[DynamicTable, StreamState]:
    """The definition, whose backing table has no id yet, and the hidden stream."""
    where = place_of(statement.name_span)
    if statement.refresh_mode == "INCREMENTAL":
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            "REFRESH_MODE = INCREMENTAL: a refresh computes the whole query, and writes the rows that differ",
            hint="REFRESH_MODE = AUTO, or leave it out",
            **where,
        )
    properties, schema = query_properties(spark, statement.query)
    names = [c for c, _ in statement.columns] or [f["name"] for f in schema["fields"]]
    _check_count(statement, names, len(schema["fields"]))
    uid = str(uuid.uuid4())
    type_ = DefinitionType.MATERIALIZED_VIEW if statement.is_materialized_view else DefinitionType.DYNAMIC_TABLE
    now, user = now_ms(), user_of(spark)
    text = text.strip().rstrip(";").strip()
    definition = Definition(uid, type_, name, {}, statement.comment, now, user, text, columns=tuple(names))
    backing = Name(name.catalog, name.schema, BACKING_PREFIX + uid.replace("-", "")[:12])
    planned = DynamicTable(
        definition,
        statement.query,
        with_names(schema, names),
        properties,
        TableSource(backing, "", ""),
        tuple(names),
        (),
        str(uuid.uuid4()),
        schedule_of(spark, statement.schedule, now),
        statement.refresh_mode or "AUTO",
    )
    whole = analysed(spark, planned, {})
    if not whole.tables:
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the query of {name} reads no table",
            hint="CREATE VIEW, or CREATE TABLE … AS",
            **where,
        )
    _check_columns(statement, names)
    tables = {part_of(t): open_table(spark, t) for t in whole.tables}
    for table in tables.values():
        table.check_trackable(StreamMode.STANDARD, {})
    source = QuerySource(HIDDEN_TYPE, name, uid, tuple((part, t.ref) for part, t in tables.items()))
    at = Parts.of({part: t.latest for part, t in tables.items()})
    stream = Stream(planned.stream_id, hidden_name(name), source, StreamMode.STANDARD, False, None, now, user, text)
    return replace(planned, keys=whole.keys), StreamState(stream, Offset(at, True), sequence=1)


def _check_cycle(spark: SparkSession, old: DynamicTable, state: StreamState, statement: CreateDynamicTable) -> None:
    """Refuses a query that reads the table in whose place it comes."""
    known = {t.definition.uuid: t for t in all_dynamic(spark)}
    reads = reads_of(spark, known.values())
    assert isinstance(state.stream.source, QuerySource)
    ids = {t.table_id for _, t in state.stream.source.tables}
    read = [uid for uid, t in known.items() if t.backing.table_id in ids]
    if old.definition.uuid in in_order(read, reads):
        by = ", ".join(str(known[uid].name) for uid in read if uid != old.definition.uuid)
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the query of {old.name} reads {old.name} itself{f', by {by}' if by else ''}",
            hint="read the tables that it is made of",
            **place_of(statement.name_span),
        )


def hidden_name(name: Name) -> Name:
    """What the ledger calls the refreshes of a dynamic table."""
    return Name(name.catalog, name.schema, f"{name.object}$refresh")


def _check_count(statement: CreateDynamicTable, names: list[str], count: int) -> None:
    if len(names) != count:
        raise StreamqlError(
            "SYNTAX_ERROR",
            f"the list has {len(names)} columns, and the query has {count}",
            hint="name all columns of the query, or none",
            **place_of(statement.name_span),
        )


def _check_columns(statement: CreateDynamicTable, names: list[str]) -> None:
    where = place_of(statement.name_span)
    hint = "SELECT … AS another_name"
    try:
        check_names(names, ".".join(statement.name), **where)
    except StreamqlError as e:
        raise StreamqlError(e.code, e.message, hint=hint, **where) from None
    for name in names:
        if name.lower().startswith(KEY_PREFIX) or [n.lower() for n in names].count(name.lower()) > 1:
            what = "is the name of a key column" if name.lower().startswith(KEY_PREFIX) else "is there twice"
            raise StreamqlError("RESERVED_COLUMN_NAME", f"column {name} {what}", hint=hint, **where)


def schedule_of(spark: SparkSession, written: WrittenSchedule | None, now: int) -> Schedule:
    """A schedule as it was written, in milliseconds. An interval's ticks are counted from START WITH, else from now."""
    if written is None:
        return Schedule()
    start = now
    if written.start is not None:
        start = time_of(spark, PointInTime("TIMESTAMP", expression=written.start)) // 1000

    def ms(seconds: int | None) -> int | None:
        return None if seconds is None else seconds * 1000

    return Schedule(ms(written.lag_s), ms(written.interval_s), start, written.is_downstream)


def _register(spark: SparkSession, old: DynamicTable | None, made: DynamicTable, state: StreamState, text: str) -> None:
    catalog, now, user = catalog_of(spark), now_ms(), user_of(spark)
    events: list[Mapping[str, Any]] = [stream_event("created", state, now, user, text)]
    if old is None:
        done = catalog.commit(spark, [], [made.to_definition(), state], events)
    else:
        was = catalog.by_uuid(spark, old.stream_id)
        assert was is not None
        last = force_release(spark, was)
        gone = next(s for s in last.after if s.stream.uuid == old.stream_id).next()
        events += [*last.events, stream_event("dropped", gone, now, user, text)]
        before: list[Entry] = [old.definition, *last.before]
        done = catalog.commit(spark, before, [made.to_definition(), state, None], events)
    if not done:
        raise StreamqlError("STREAM_BUSY", f"{made.name} was made or changed meanwhile", hint="run the statement again")


def drop_dynamic(spark: SparkSession, statement: DropDynamicTable, text: str) -> None:
    """Drops a dynamic table with its rows. Streams on it then raise STREAM_SOURCE_MISSING. Raises DYNAMIC_TABLE_NOT_FOUND, STREAM_BUSY."""
    transactions.refuse_in_block(spark, f"DROP {_label(statement)}")
    if statement.if_exists and find_dynamic(spark, qualify(spark, statement.name)) is None:
        return
    where = place_of(statement.name_span)
    found = need_dynamic(spark, statement.name, is_view=statement.is_materialized_view, where=where)
    _drop(spark, found, text)


def _drop(spark: SparkSession, found: DynamicTable, text: str) -> None:
    catalog = catalog_of(spark)
    for _ in range(ATTEMPTS_MAX):
        state = catalog.by_uuid(spark, found.stream_id)
        if state is None:
            done = catalog.commit(spark, [found.definition], [None], [])
        else:
            last = force_release(spark, state)
            gone = next(s for s in last.after if s.stream.uuid == found.stream_id).next()
            events = [*last.events, stream_event("dropped", gone, now_ms(), user_of(spark), text)]
            done = catalog.commit(spark, [found.definition, *last.before], [None, None], events)
        if done:
            drop_parts(spark, found)
            return
        found = find_dynamic(spark, found.name) or found
    raise StreamqlError("STREAM_BUSY", f"others keep changing {found.name}", hint="run the statement again")


def alter_dynamic(spark: SparkSession, statement: AlterDynamicTable, text: str) -> None:  # noqa: ARG001 - no row is written
    """Suspends, resumes, renames a dynamic table, or changes its schedule or comment. Raises DYNAMIC_TABLE_NOT_FOUND, STREAM_BUSY."""
    transactions.refuse_in_block(spark, f"ALTER {_label(statement)}")
    if statement.if_exists and find_dynamic(spark, qualify(spark, statement.name)) is None:
        return
    where = place_of(statement.name_span)
    for _ in range(ATTEMPTS_MAX):
        found = need_dynamic(spark, statement.name, is_view=statement.is_materialized_view, where=where)
        if isinstance(statement.action, RenameTo):
            if _rename(spark, found, statement.action):
                return
            continue
        changed = _altered(spark, found, statement)
        changed = replace(changed, definition=replace(changed.definition, sequence=found.definition.sequence + 1))
        if catalog_of(spark).commit(spark, [found.definition], [changed.to_definition()], []):
            if isinstance(statement.action, SetComment):
                make_view(spark, changed, comments_of(spark, found), replace=True)
            return
    raise StreamqlError("STREAM_BUSY", "others keep changing the table", hint="run the statement again")


def _altered(spark: SparkSession, found: DynamicTable, statement: AlterDynamicTable) -> DynamicTable:
    action = statement.action
    if isinstance(action, Suspend | Resume):
        return replace(found, is_suspended=isinstance(action, Suspend))
    if isinstance(action, SetSchedule):
        return replace(found, schedule=schedule_of(spark, action.schedule, now_ms()))
    if isinstance(action, SetRefreshMode):
        if action.mode == "INCREMENTAL":
            raise StreamqlError(
                "UNSUPPORTED_CLAUSE",
                "REFRESH_MODE = INCREMENTAL: a refresh computes the whole query, and writes the rows that differ",
                hint="REFRESH_MODE = AUTO",
            )
        return replace(found, refresh_mode=action.mode)
    assert isinstance(action, SetComment)
    return replace(found, definition=replace(found.definition, comment=action.comment))


def _rename(spark: SparkSession, found: DynamicTable, action: RenameTo) -> bool:
    """Gives the table another name. False: others changed it meanwhile."""
    parts = action.name if len(action.name) > 1 else (found.name.catalog, found.name.schema, *action.name)
    name = qualify(spark, parts)
    if name.catalog != found.name.catalog or name.schema.lower() != found.name.schema.lower():
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            f"RENAME TO {name}: the rows of {found.name} stay in its schema",
            hint=f"ALTER {found.label} {found.name} RENAME TO {name.object}",
        )
    _drop_left_over(spark, name)
    check_free(spark, name, None)
    catalog = catalog_of(spark)
    if catalog.find(spark, name) is not None:
        raise StreamqlError("NAME_ALREADY_IN_USE", f"{name} is a stream", hint="choose another name")
    state = catalog.by_uuid(spark, found.stream_id)
    assert state is not None
    definition = replace(found.definition, name=name, sequence=found.definition.sequence + 1)
    renamed = replace(found, definition=definition, former=(*found.former, (found.name, now_ms())))
    make_view(spark, renamed, comments_of(spark, found), replace=False)
    after = state.next(stream=replace(state.stream, name=hidden_name(name)))
    event = stream_event("renamed", after, now_ms(), user_of(spark), f"RENAME TO {name}")
    if not catalog.commit(spark, [found.definition, state], [renamed.to_definition(), after], [event]):
        dynamic_session(spark).sql(f"DROP VIEW IF EXISTS {name.sql}")
        return False
    if mark_of(spark, found.name) == found.definition.uuid:
        dynamic_session(spark).sql(f"DROP VIEW IF EXISTS {found.name.sql}")
    return True
