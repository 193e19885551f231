"""ALTER and DROP of dynamic tables and materialized views."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from streamql.catalog.events import stream_event
from streamql.catalog.identity import user_of
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.consume import Change, force_release, session_transactions
from streamql.delta.names import qualify
from streamql.delta.neutral import dynamic_session
from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.statements import PointInTime
from streamql.engine.ddl import ATTEMPTS_MAX, check_free, check_free_of_streams, place_of
from streamql.engine.points import time_of
from streamql.errors import StreamqlError
from streamql.features.dynamic.language.statements import (
    AlterDynamicTable,
    CreateDynamicTable,
    DropDynamicTable,
    Resume,
    SetRefreshMode,
    SetSchedule,
    Suspend,
)
from streamql.features.dynamic.language.statements import Schedule as WrittenSchedule
from streamql.features.dynamic.source.analysis import not_incremental
from streamql.features.dynamic.source.backing import (
    comments_of,
    drop_left_over,
    drop_parts,
    hidden_name,
    hidden_stream,
    make_view,
    mark_of,
    need_dynamic,
    query_of,
)
from streamql.features.dynamic.source.costs import INCREMENTAL
from streamql.features.dynamic.source.queries import DynamicQuery
from streamql.features.dynamic.source.refresh import open_refresh
from streamql.features.dynamic.source.table import DynamicTable, Schedule, dynamic_of_id, find_dynamic
from streamql.times import now_ms

GONE = frozenset(("STREAM_NOT_FOUND", "DYNAMIC_TABLE_NOT_FOUND"))
"""What a statement raises that waited for a refresh, if others have dropped the table meanwhile."""


def drop_dynamic(spark: SparkSession, statement: DropDynamicTable, text: str) -> None:
    """Drops a dynamic table with its rows. Streams on it then raise STREAM_SOURCE_MISSING. Raises DYNAMIC_TABLE_NOT_FOUND, STREAM_BUSY."""
    session_transactions.refuse_in_transaction(spark, f"DROP {label_of(statement)}")
    where, is_dropped = place_of(statement.name_span), False
    while not is_dropped:
        if statement.if_exists and find_dynamic(spark, qualify(spark, statement.name)) is None:
            return
        found = need_dynamic(spark, statement.name, is_view=statement.is_materialized_view, where=where)
        is_dropped = drop(spark, found, text, follows_renames=False)


def drop(spark: SparkSession, found: DynamicTable, text: str, *, follows_renames: bool) -> bool:
    """Drops a dynamic table, its hidden stream and its rows. False: others have dropped or replaced it, or have renamed it and it
    `follows_renames` not. Raises STREAM_BUSY."""
    for _ in range(ATTEMPTS_MAX):
        now = dynamic_of_id(spark, found.definition.uuid)
        # Its parts belong to the statement that dropped or replaced it. A CREATE OR REPLACE that fails puts them back.
        if now is None or (not follows_renames and now.name.key != found.name.key):
            return False
        if _is_dropped(spark, now, text):
            drop_parts(spark, now)
            return True
    raise StreamqlError("STREAM_BUSY", f"other processes keep changing {found.name}", hint="run the statement again")


def _is_dropped(spark: SparkSession, now: DynamicTable, text: str) -> bool:
    """Takes a definition and its hidden stream out of the catalog. False: others have changed one of them."""
    catalog = catalog_of(spark)
    state = catalog.by_uuid(spark, now.stream_id)
    if state is None:
        return catalog.commit(spark, [now.definition], [None], [])
    try:
        last, _ = dropped(spark, state, text)
    except StreamqlError as e:
        if e.code in GONE:
            return False
        raise
    return catalog.commit(spark, [now.definition, *last.before], [None, None], last.events)


def dropped(spark: SparkSession, state: StreamState, text: str) -> tuple[Change, StreamState]:
    """Returns what drops a hidden stream: the change that frees it, with the events of both; and its last state. Raises STREAM_BUSY."""
    last = force_release(spark, state)
    gone = next(s for s in last.after if s.stream.uuid == state.stream.uuid).next()
    event = stream_event("dropped", gone, now_ms(), user_of(spark), text)
    return replace(last, events=[*last.events, event]), gone


def alter_dynamic(spark: SparkSession, statement: AlterDynamicTable, text: str) -> None:  # noqa: ARG001 - no row is written
    """Suspends, resumes, renames a dynamic table, or changes its schedule or comment. Raises DYNAMIC_TABLE_NOT_FOUND, STREAM_BUSY."""
    session_transactions.refuse_in_transaction(spark, f"ALTER {label_of(statement)}")
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
    raise StreamqlError(
        "STREAM_BUSY", f"other processes keep changing {'.'.join(statement.name)}", hint="run the statement again"
    )


def _altered(spark: SparkSession, found: DynamicTable, statement: AlterDynamicTable) -> DynamicTable:
    action = statement.action
    if isinstance(action, Suspend | Resume):
        return replace(found, is_suspended=isinstance(action, Suspend))
    if isinstance(action, SetSchedule):
        return replace(found, schedule=schedule_of(spark, action.schedule, now_ms()))
    if isinstance(action, SetRefreshMode):
        if action.mode == INCREMENTAL:
            check_incremental(open_refresh(spark, query_of(hidden_stream(spark, found))).query)
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
            f"RENAME TO {name} is not supported: a rename cannot move {found.name} to another schema",
            hint=f"ALTER {found.label} {found.name} RENAME TO {name.object}",
        )
    drop_left_over(spark, name)
    check_free(spark, name, None)
    catalog = catalog_of(spark)
    check_free_of_streams(spark, name, {})
    state = hidden_stream(spark, found)
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


def schedule_of(spark: SparkSession, written: WrittenSchedule | None, now: int) -> Schedule:
    """Returns a schedule as it was written, in milliseconds. An interval's ticks are counted from START WITH, else from now."""
    if written is None:
        return Schedule()
    start = now
    if written.start is not None:
        start = time_of(spark, PointInTime("TIMESTAMP", expression=written.start)) // 1000

    def ms(seconds: int | None) -> int | None:
        return None if seconds is None else seconds * 1000

    return Schedule(ms(written.lag_s), ms(written.interval_s), start, written.is_downstream)


def label_of(statement: CreateDynamicTable | DropDynamicTable | AlterDynamicTable) -> str:
    """Returns what a statement calls the table: DYNAMIC TABLE or MATERIALIZED VIEW."""
    return "MATERIALIZED VIEW" if statement.is_materialized_view else "DYNAMIC TABLE"


def check_incremental(query: DynamicQuery, **where: int) -> None:
    """Raises UNSUPPORTED_CLAUSE if refreshes cannot follow the changes of the tables that a query reads."""
    why = not_incremental(query)
    if why is not None:
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            f"REFRESH_MODE = INCREMENTAL: the query {why}, so refreshes may have to compute all of it",
            hint="REFRESH_MODE = AUTO",
            **where,
        )
