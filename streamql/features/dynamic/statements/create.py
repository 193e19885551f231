"""CREATE of dynamic tables and materialized views."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.definitions import Entry
from streamql.catalog.events import stream_event
from streamql.catalog.identity import user_of
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.changes.schema import check_names
from streamql.consume import session_transactions
from streamql.delta.jvm import sentence
from streamql.delta.names import SESSION_CATALOG, qualify
from streamql.engine.ddl import ATTEMPTS_MAX, check_free, check_free_of_streams, definition_exists, place_of
from streamql.errors import StreamqlError
from streamql.features.dynamic.language.statements import CreateDynamicTable
from streamql.features.dynamic.refreshes.clock import warn_of_clock
from streamql.features.dynamic.refreshes.run import refresh_created
from streamql.features.dynamic.source.analysis import HIDDEN_PREFIXES, analysed, known_by
from streamql.features.dynamic.source.backing import (
    check_acyclic,
    drop_left_over,
    drop_parts,
    drop_unless_shown,
    hidden_name,
    hidden_stream,
    make_backing,
    make_view,
    mark_of,
    query_of,
    show_rows,
    with_names,
)
from streamql.features.dynamic.source.costs import INCREMENTAL
from streamql.features.dynamic.source.keys import keys_of, open_by_key
from streamql.features.dynamic.source.queries import SparkError, query_properties, substituted
from streamql.features.dynamic.source.table import BACKING_PREFIX, DynamicTable, dynamic_of_id, find_dynamic
from streamql.features.dynamic.statements.ddl import GONE, check_incremental, drop, dropped, label_of, schedule_of
from streamql.model import Offset, Parts, Stream, StreamMode, TableSource
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType
from streamql.sources.protocol import HIDDEN_TYPE
from streamql.sources.tables.history import check_all_trackable
from streamql.sources.views.positions import part_of
from streamql.sources.views.query import QuerySource
from streamql.times import now_ms

log = logging.getLogger("streamql")


def create_dynamic(spark: SparkSession, statement: CreateDynamicTable, text: str) -> None:
    """Makes a dynamic table or a materialized view, and fills it unless the statement says otherwise. Raises NAME_ALREADY_IN_USE,
    SCHEMA_NOT_FOUND, UNSUPPORTED_SOURCE, UNSUPPORTED_CLAUSE, CHANGE_TRACKING_DISABLED, RESERVED_COLUMN_NAME, what Spark says of the query,
    and what the refresh raises: then nothing is left of the table."""
    session_transactions.refuse_in_transaction(spark, f"CREATE {label_of(statement)}")
    name, where = qualify(spark, statement.name), place_of(statement.name_span)
    old = find_dynamic(spark, name)
    if old is not None and statement.if_not_exists:
        return
    if old is not None and not statement.or_replace:
        raise definition_exists(old.definition, where)
    if old is None:
        _check_name(spark, statement, name)
    for clause in statement.unused:
        log.warning("%s has no effect: refreshes run in the session of the REFRESH statement", clause)
    made, state = _planned(spark, statement, name, text)
    warn_of_clock(name, query_of(state))
    if old is not None:
        ids = (t.table_id for _, t in query_of(state).tables)
        check_acyclic(spark, old, ids, **place_of(statement.name_span))
    made = replace(made, backing=make_backing(spark, made, query_of(state), statement))
    if old is None:
        _create(spark, made, state, statement, text)
    else:
        _replace(spark, old, made, state, statement, text)


def _create(
    spark: SparkSession, made: DynamicTable, state: StreamState, statement: CreateDynamicTable, text: str
) -> None:
    name, comments = made.name, dict(statement.columns)
    try:
        make_view(spark, made, comments, replace=False)
        _register(spark, made, state, [stream_event("created", state, now_ms(), user_of(spark), text)])
    except BaseException:
        _cleaned(made, lambda: _take_back(spark, made, text))
        raise
    try:
        if mark_of(spark, name) != made.definition.uuid:
            make_view(spark, made, comments, replace=True)
        if statement.is_initialized:
            refresh_created(spark, made)
    except BaseException:
        _cleaned(made, lambda: drop(spark, made, text, follows_renames=True))
        raise


def _take_back(spark: SparkSession, made: DynamicTable, text: str) -> None:
    """Drops a table that could not be registered."""
    other = find_dynamic(spark, made.name)
    if other is not None and other.definition.uuid == made.definition.uuid:  # it was stopped after it was registered
        drop(spark, made, text, follows_renames=True)
        return
    # Before another CREATE of the name was registered, its view looked like one that was left over.
    if other is not None:
        with contextlib.suppress(*SparkError):  # others have dropped it meanwhile
            show_rows(spark, other)
    drop_parts(spark, made)


def _cleaned(made: DynamicTable, clean: Callable[[], object]) -> None:
    """Cleans up behind an error, which is more than another one that the cleaning may raise."""
    try:
        clean()
    except (StreamqlError, *SparkError) as e:
        log.warning(
            "parts of %s may be left: %s", made.name, e.message if isinstance(e, StreamqlError) else sentence(e)
        )


def _replace(
    spark: SparkSession,
    old: DynamicTable,
    made: DynamicTable,
    state: StreamState,
    statement: CreateDynamicTable,
    text: str,
) -> None:
    """Puts one table in the place of another. The view shows the rows of the old one until the new one is filled. If that fails, the old
    definition comes back."""
    made = replace(made, former=old.former)  # queries that name it by one of them read the new one
    last, gone = dropped(spark, hidden_stream(spark, old), text)
    events = [stream_event("created", state, now_ms(), user_of(spark), text), *last.events]
    try:
        _register(spark, made, state, events, before=[old.definition, *last.before])
    except BaseException:
        _cleaned(made, lambda: drop_parts(spark, made, view=False))
        raise
    try:
        if statement.is_initialized:
            refresh_created(spark, made)
        now = dynamic_of_id(spark, made.definition.uuid)
        if now is not None:
            make_view(spark, now, dict(statement.columns), replace=True)
    except BaseException:
        _cleaned(made, lambda: _put_back(spark, old, gone.next(), made, text))
        raise
    drop_unless_shown(spark, old)
    if now is not None:
        drop_parts(spark, old, view=False)


def _put_back(spark: SparkSession, old: DynamicTable, was: StreamState, made: DynamicTable, text: str) -> None:
    """Registers a table again whose replacement could not be filled. If others have replaced the replacement, it stays."""
    catalog = catalog_of(spark)
    for _ in range(ATTEMPTS_MAX):
        now = dynamic_of_id(spark, made.definition.uuid)
        if now is None:
            drop_unless_shown(spark, old)
            return
        try:
            last, _ = dropped(spark, hidden_stream(spark, now), text)
        except StreamqlError as e:
            if e.code in GONE:
                continue
            raise
        events = [*last.events, stream_event("created", was, now_ms(), user_of(spark), old.definition.text)]
        definition = replace(old.to_definition(), sequence=old.definition.sequence + 2)
        if catalog.commit(spark, [now.definition, *last.before], [definition, was, None], events):
            show_rows(spark, old, or_missing=True)
            drop_parts(spark, now)
            return
    raise StreamqlError("STREAM_BUSY", f"other processes keep changing {old.name}")


def _check_name(spark: SparkSession, statement: CreateDynamicTable, name: Name) -> None:
    where = place_of(statement.name_span)
    if name.catalog != SESSION_CATALOG:
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            f"a {label_of(statement).lower()} must be in {SESSION_CATALOG}: the catalog {name.catalog} does not support views",
            hint=f"CREATE {label_of(statement)} {SESSION_CATALOG}.schema.{name.object}",
            **where,
        )
    check_free_of_streams(spark, name, where)
    drop_left_over(spark, name)
    check_free(spark, name, statement.name_span)


def _planned(
    spark: SparkSession, statement: CreateDynamicTable, name: Name, text: str
) -> tuple[DynamicTable, StreamState]:
    """Returns the definition, whose backing table has no id yet, and the hidden stream."""
    where = place_of(statement.name_span)
    query = _substituted(spark, statement)
    before = "" if statement.query_span is None else text[: statement.query_span.start]
    properties, schema = query_properties(spark, query, before)
    names = [c for c, _ in statement.columns] or [f["name"] for f in schema["fields"]]
    _check_count(statement, names, len(schema["fields"]))
    uid = str(uuid.uuid4())
    type_ = DefinitionType.MATERIALIZED_VIEW if statement.is_materialized_view else DefinitionType.DYNAMIC_TABLE
    now, user = now_ms(), user_of(spark)
    text = text.strip().rstrip(";").strip()
    made_by = text.rpartition(statement.query)[0] + query
    definition = Definition(uid, type_, name, {}, statement.comment, now, user, made_by, columns=tuple(names))
    backing = Name(name.catalog, name.schema, BACKING_PREFIX + uid.replace("-", "")[:12])
    planned = DynamicTable(
        definition,
        query,
        with_names(schema, names),
        properties,
        TableSource(backing, "", ""),
        tuple(names),
        (),
        None,
        str(uuid.uuid4()),
        schedule_of(spark, statement.schedule, now),
        statement.refresh_mode or "AUTO",
    )
    analysed_query = analysed(spark, planned, {}, {})
    if not analysed_query.tables:
        raise StreamqlError(
            "UNSUPPORTED_SOURCE",
            f"the query of {name} reads no table",
            hint="CREATE VIEW, or CREATE TABLE … AS",
            **where,
        )
    _check_columns(statement, names)
    tables = {part_of(t): open_by_key(spark, t) for t in analysed_query.tables}
    check_all_trackable(tables.values(), {})
    parts = tuple((part, t.ref) for part, t in tables.items())
    if keys := keys_of(parts):
        analysed_query = analysed(spark, planned, {}, keys)
    if planned.refresh_mode == INCREMENTAL:
        check_incremental(analysed_query, **where)
    source = known_by(QuerySource(HIDDEN_TYPE, name, uid, parts, tried_ms=0), analysed_query)
    at = Parts.of({part: t.latest for part, t in tables.items()})
    stream = Stream(planned.stream_id, hidden_name(name), source, StreamMode.STANDARD, False, None, now, user, text)
    return replace(planned, keys=analysed_query.keys, states=analysed_query.states), StreamState(
        stream, Offset(at, True), sequence=1
    )


def _substituted(spark: SparkSession, statement: CreateDynamicTable) -> str:
    """Returns the query with the values of the session's variables."""
    query = substituted(spark, statement.query)
    if query is None:
        raise StreamqlError(
            "UNSUPPORTED_CLAUSE",
            "the query has a variable of the process (${env:…}, ${system:…}): SHOW would print its value, and other processes have others",
            hint="SET name = value, and write ${name}, if SHOW CREATE may show the value; else read it from a table",
            **place_of(statement.query_span),
        )
    return query


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
    check_names(names, ".".join(statement.name), hint, **where)
    folded = [name.lower() for name in names]
    for name in names:
        prefix = next((p for p in HIDDEN_PREFIXES if name.lower().startswith(p)), None)
        if prefix is not None or folded.count(name.lower()) > 1:
            what = f"begins with {prefix}, as hidden columns do" if prefix is not None else "appears twice"
            raise StreamqlError("RESERVED_COLUMN_NAME", f"column {name} {what}", hint=hint, **where)


def _register(
    spark: SparkSession,
    made: DynamicTable,
    state: StreamState,
    events: Sequence[Mapping[str, Any]],
    before: Sequence[Entry] = (),
) -> None:
    """Puts a definition and its hidden stream into the catalog, in the place of `before`. Raises STREAM_BUSY."""
    after: list[Entry | None] = [made.to_definition(), state, *(None for _ in before[1:])]
    if not catalog_of(spark).commit(spark, before, after, events):
        raise StreamqlError(
            "STREAM_BUSY",
            f"another process created or changed {made.name} during this statement",
            hint="run the statement again",
        )
