"""SHOW and DESCRIBE of dynamic tables, the history of their refreshes, and the statements that refresh and verify."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.rows import Value, small_frame
from streamql.engine.ddl import place_of
from streamql.engine.show import CREATE_COLUMNS, DESCRIBE_COLUMNS, listed_schema, narrowed, time_text
from streamql.features.dynamic.language.statements import (
    DescribeDynamicTable,
    ExplainRefresh,
    RefreshDynamicTable,
    ShowCreateDynamicTable,
    ShowDynamicTables,
    ShowRefreshHistory,
    VerifyDynamicTable,
)
from streamql.features.dynamic.lines import schedule_text
from streamql.features.dynamic.refreshes.refresh import REASONS, Result
from streamql.features.dynamic.refreshes.run import run
from streamql.features.dynamic.refreshes.status import (
    BEHIND,
    DynamicStatus,
    Refresh,
    newest_refreshes,
    refreshes,
    statuses,
)
from streamql.features.dynamic.refreshes.verify import verify
from streamql.features.dynamic.source.backing import need_dynamic, shown_names
from streamql.features.dynamic.source.table import DynamicTable, Schedule, all_dynamic
from streamql.features.dynamic.statements.explain import explain

TABLES_COLUMNS = (
    "name STRING, schema_name STRING, state STRING, target_lag STRING, lag_seconds BIGINT, has_changes BOOLEAN, refresh_mode STRING, "
    "last_refresh TIMESTAMP_LTZ, last_outcome STRING, reads STRING, comment STRING, create_time TIMESTAMP_LTZ, query STRING, "
    "reason STRING"
)
REFRESH_COLUMNS = (
    "name STRING, outcome STRING, mode STRING, reason STRING, rows_inserted BIGINT, rows_updated BIGINT, rows_deleted BIGINT, "
    "duration_ms BIGINT"
)
HISTORY_COLUMNS = (
    "name STRING, outcome STRING, mode STRING, reason STRING, started_at TIMESTAMP_LTZ, ended_at TIMESTAMP_LTZ, duration_ms BIGINT, "
    "rows_inserted BIGINT, rows_updated BIGINT, rows_deleted BIGINT, source_versions STRING, table_version BIGINT, error STRING, "
    "why_not_incremental STRING"
)
VERIFY_COLUMNS = (
    "name STRING, verdict STRING, row_count BIGINT, rows_missing BIGINT, rows_unexpected BIGINT, source_versions STRING"
)
EXPLAIN_COLUMNS = "info_name STRING, info_value STRING"


def show_dynamic_tables(spark: SparkSession, statement: ShowDynamicTables) -> DataFrame:
    """Returns the dynamic tables or materialized views of a schema, the current one unless named: TABLES_COLUMNS. Raises
    SCHEMA_NOT_FOUND."""
    catalog, schema = listed_schema(spark, statement.schema)
    label = "MATERIALIZED VIEW" if statement.is_materialized_view else "DYNAMIC TABLE"
    tables = [t for t in all_dynamic(spark) if t.label == label and t.name.is_in(catalog, schema)]
    last = newest_refreshes(spark, tables)
    rows = [_row(s, last.get(s.table.definition.uuid)) for s in statuses(spark, tables)]
    frame = small_frame(spark, TABLES_COLUMNS, rows)
    return narrowed(frame, statement.like, statement.where, statement.limit)


def _row(status: DynamicStatus, last: Refresh | None) -> list[Value]:
    table = status.table
    return [
        table.name.object,
        table.name.schema,
        status.state,
        _schedule(table.schedule),
        status.lag_ms // 1000,
        status.behind_since_ms is not None,
        table.refresh_mode,
        None if last is None else last.ended_ms,
        None if last is None else last.outcome,
        ", ".join(status.reads) or None,
        table.definition.comment,
        table.definition.created_at_ms,
        table.query,
        _reason(status),
    ]


def _reason(status: DynamicStatus) -> str | None:
    """Returns why a table has changes to show. None: it has none."""
    return None if status.behind_by is None else BEHIND[status.behind_by]


def _schedule(schedule: Schedule) -> str | None:
    """Returns a schedule as SHOW has it. None: only statements refresh the table."""
    return "DOWNSTREAM" if schedule.is_downstream else schedule_text(schedule) or None


def describe_dynamic_table(spark: SparkSession, statement: DescribeDynamicTable) -> DataFrame:
    """Returns what is known of a dynamic table, a row a fact: info_name, info_value."""
    table = _need(spark, statement)
    (status,) = statuses(spark, [table])
    last = newest_refreshes(spark, [table]).get(table.definition.uuid)
    facts: list[tuple[str, str | None]] = [
        ("name", str(table.name)),
        ("type", table.label),
        ("state", status.state),
        ("target_lag", _schedule(table.schedule)),
        ("lag_seconds", str(status.lag_ms // 1000)),
        ("has_changes", "true" if status.behind_since_ms is not None else "false"),
        ("reason", _reason(status)),
        ("refresh_mode", table.refresh_mode),
        ("source_versions", None if status.positions is None else _versions(status.positions, shown_names(spark))),
        ("reads", ", ".join(status.reads) or None),
        ("refreshing_now", "true" if status.is_refreshing else "false"),
        ("last_refresh", None if last is None else time_text(spark, last.ended_ms)),
        ("last_outcome", None if last is None else last.outcome),
        ("last_error", None if last is None else last.error),
        ("columns", ", ".join(table.columns)),
        ("row_key", ", ".join(table.keys)),
        ("stored_in", str(table.backing.name)),
        ("comment", table.definition.comment),
        ("created_by", table.definition.created_by),
        ("create_time", time_text(spark, table.definition.created_at_ms)),
        ("query", table.query),
    ]
    return small_frame(spark, DESCRIBE_COLUMNS, [[k, v] for k, v in facts])


def show_create_dynamic_table(spark: SparkSession, statement: ShowCreateDynamicTable) -> DataFrame:
    """Returns the statement that made the table, as it was written."""
    return small_frame(spark, CREATE_COLUMNS, [[_need(spark, statement).definition.text]])


def show_refresh_history(spark: SparkSession, statement: ShowRefreshHistory) -> DataFrame:
    """Returns the refreshes that wrote, and those that failed, the newest first: HISTORY_COLUMNS. Raises DYNAMIC_TABLE_NOT_FOUND."""
    if statement.name is None:
        label = "MATERIALIZED VIEW" if statement.is_materialized_view else "DYNAMIC TABLE"
        tables = [t for t in all_dynamic(spark) if t.label == label]
    else:
        where = place_of(statement.name_span)
        tables = [need_dynamic(spark, statement.name, is_view=statement.is_materialized_view, where=where)]
    shown = shown_names(spark)
    rows: list[list[Value]] = [
        [
            r.table,
            r.outcome,
            r.mode,
            REASONS.get(r.reason or "", r.reason),
            r.started_ms,
            r.ended_ms,
            r.ended_ms - r.started_ms,
            *_counts(r.rows),
            None if r.positions is None else _versions(json.loads(r.positions), shown),
            r.version,
            r.error,
            r.why_full,
        ]
        for r in refreshes(spark, tables)
    ]
    frame = small_frame(spark, HISTORY_COLUMNS, rows)
    return narrowed(frame, None, statement.where, statement.limit)


def _counts(rows: Mapping[str, int] | None) -> list[int | None]:
    return [None if rows is None else rows[name] for name in ("inserted", "updated", "deleted")]


def refresh_dynamic_table(spark: SparkSession, statement: RefreshDynamicTable) -> DataFrame:
    """Refreshes a table and the dynamic tables that it reads: a row each, REFRESH_COLUMNS."""
    return small_frame(spark, REFRESH_COLUMNS, [result_row(r) for r in run(spark, [_need(spark, statement)])])


def result_row(result: Result) -> list[Value]:
    """Returns what a refresh did, as REFRESH_COLUMNS."""
    wrote = result.reason is not None
    return [
        str(result.table.name),
        result.outcome,
        result.mode,
        REASONS[result.reason] if result.reason is not None else None,
        *_counts(result.rows if wrote else {"inserted": 0, "updated": 0, "deleted": 0}),
        result.duration_ms,
    ]


def verify_dynamic_table(spark: SparkSession, statement: VerifyDynamicTable) -> DataFrame:
    """Compares a table with its query at the versions that it was refreshed at: one row, VERIFY_COLUMNS."""
    table = _need(spark, statement)
    found = verify(spark, table)
    is_equal = not found.missing and not found.unexpected
    row: list[Value] = [
        str(table.name),
        "EQUAL" if is_equal else "DIFFERENT",
        found.rows,
        found.missing,
        found.unexpected,
        _versions(found.positions, shown_names(spark)),
    ]
    return small_frame(spark, VERIFY_COLUMNS, [row])


def explain_refresh(spark: SparkSession, statement: ExplainRefresh) -> DataFrame:
    """Returns what a refresh would do now, a row a fact; it does nothing."""
    return small_frame(spark, EXPLAIN_COLUMNS, [[k, v] for k, v in explain(spark, _need(spark, statement))])


def _versions(positions: Mapping[str, int], shown: Mapping[str, str]) -> str:
    """Versions by table as JSON, the tables under the names that are `shown`."""
    return json.dumps({shown.get(part, part): version for part, version in positions.items()}, sort_keys=True)


def _need(
    spark: SparkSession,
    statement: DescribeDynamicTable
    | ShowCreateDynamicTable
    | RefreshDynamicTable
    | VerifyDynamicTable
    | ExplainRefresh,
) -> DynamicTable:
    where = place_of(statement.name_span)
    return need_dynamic(spark, statement.name, is_view=statement.is_materialized_view, where=where)
