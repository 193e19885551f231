"""Runs our own statements: parse → plan (data) → run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.consume import transactions
from streamql.dialect import parse
from streamql.dialect.dynamic.statements import (
    AlterDynamicTable,
    CreateDynamicTable,
    DescribeDynamicTable,
    DropDynamicTable,
    ExplainRefresh,
    RefreshDynamicTable,
    ShowCreateDynamicTable,
    ShowDynamicTables,
    ShowRefreshHistory,
    VerifyDynamicTable,
)
from streamql.dialect.statements import (
    AlterStream,
    BeginTransaction,
    CommitTransaction,
    CreateConnection,
    CreateExternalTable,
    CreateStream,
    DescribeConnection,
    DescribeExternalTable,
    DescribeStream,
    DropConnection,
    DropExternalTable,
    DropStream,
    RollbackStatement,
    RollbackTransaction,
    SetTableProperties,
    ShowConnections,
    ShowCreateExternalTable,
    ShowCreateStream,
    ShowExternalTables,
    ShowStreams,
    Statement,
)
from streamql.engine.ddl import alter_stream, create_stream, drop_stream
from streamql.engine.dynamic.create import create_dynamic
from streamql.engine.dynamic.ddl import alter_dynamic, drop_dynamic
from streamql.engine.dynamic.show import (
    EXPLAIN_COLUMNS,
    HISTORY_COLUMNS,
    REFRESH_COLUMNS,
    VERIFY_COLUMNS,
    describe_dynamic_table,
    explain_refresh,
    refresh_dynamic_table,
    show_create_dynamic_table,
    show_dynamic_tables,
    show_refresh_history,
    verify_dynamic_table,
)
from streamql.engine.dynamic.show import TABLES_COLUMNS as DYNAMIC_COLUMNS
from streamql.engine.external import (
    CONNECTIONS_COLUMNS,
    TABLES_COLUMNS,
    create_connection,
    create_external_table,
    describe_connection,
    describe_external_table,
    drop_connection,
    drop_external_table,
    show_connections,
    show_create_external_table,
    show_external_tables,
)
from streamql.engine.properties import set_table_properties
from streamql.engine.show import (
    CREATE_COLUMNS,
    DESCRIBE_COLUMNS,
    SHOW_COLUMNS,
    TERSE_COLUMNS,
    describe_stream,
    show_create_stream,
    show_streams,
)
from streamql.errors import StreamqlError

__all__ = ["columns_of", "run"]

_RESULTS: dict[type, tuple[str, Callable[[SparkSession, Any], DataFrame]]] = {
    ShowStreams: (SHOW_COLUMNS, show_streams),
    DescribeStream: (DESCRIBE_COLUMNS, describe_stream),
    ShowCreateStream: (CREATE_COLUMNS, show_create_stream),
    ShowConnections: (CONNECTIONS_COLUMNS, show_connections),
    ShowExternalTables: (TABLES_COLUMNS, show_external_tables),
    DescribeConnection: (DESCRIBE_COLUMNS, describe_connection),
    DescribeExternalTable: (DESCRIBE_COLUMNS, describe_external_table),
    ShowCreateExternalTable: (CREATE_COLUMNS, show_create_external_table),
    ShowDynamicTables: (DYNAMIC_COLUMNS, show_dynamic_tables),
    DescribeDynamicTable: (DESCRIBE_COLUMNS, describe_dynamic_table),
    ShowCreateDynamicTable: (CREATE_COLUMNS, show_create_dynamic_table),
    ShowRefreshHistory: (HISTORY_COLUMNS, show_refresh_history),
    RefreshDynamicTable: (REFRESH_COLUMNS, refresh_dynamic_table),
    VerifyDynamicTable: (VERIFY_COLUMNS, verify_dynamic_table),
    ExplainRefresh: (EXPLAIN_COLUMNS, explain_refresh),
}

_EVENTS: dict[type, Callable[[SparkSession, Any, str], None]] = {
    CreateStream: create_stream,
    DropStream: drop_stream,
    AlterStream: alter_stream,
    CreateConnection: create_connection,
    CreateExternalTable: create_external_table,
    DropConnection: drop_connection,
    DropExternalTable: drop_external_table,
    CreateDynamicTable: create_dynamic,
    AlterDynamicTable: alter_dynamic,
    DropDynamicTable: drop_dynamic,
    SetTableProperties: lambda spark, statement, _: set_table_properties(spark, statement),
    BeginTransaction: lambda spark, *_: transactions.begin(spark),
    CommitTransaction: lambda spark, *_: transactions.commit(spark),
    RollbackTransaction: lambda spark, *_: transactions.rollback(spark),
    RollbackStatement: lambda spark, *_: transactions.rollback_statement(spark),
}


def columns_of(statement: Statement) -> str:
    """Returns the columns of a statement's result, as DDL; empty: it has none."""
    if isinstance(statement, ShowStreams) and statement.terse:
        return TERSE_COLUMNS
    return _RESULTS[type(statement)][0] if type(statement) in _RESULTS else ""


def run(spark: SparkSession, text: str) -> DataFrame | None:
    """Runs one of our own statements; None: it has no rows to show. Raises StreamqlError; then nothing was created or moved."""
    statement = parse(text)
    if statement is None:
        raise StreamqlError("INTERNAL_ERROR", "a statement that is not ours reached the engine")
    if type(statement) in _RESULTS:
        return _RESULTS[type(statement)][1](spark, statement)
    _EVENTS[type(statement)](spark, statement, text)
    return None
