"""How the kernel's own statements are run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from streamql.consume import session_transactions
from streamql.dialect.statements import (
    AlterStream,
    BeginTransaction,
    CommitTransaction,
    CreateStream,
    DescribeStream,
    DropStream,
    RollbackStatement,
    RollbackTransaction,
    SetTableProperties,
    ShowCreateStream,
    ShowStreams,
)
from streamql.engine import StatementType, without_text
from streamql.engine.ddl import alter_stream, create_stream, drop_stream
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


def _in_session(work: Callable[[SparkSession], None]) -> Callable[[SparkSession, Any, str], None]:
    return lambda spark, *_: work(spark)


STATEMENTS = (
    StatementType(CreateStream, create_stream),
    StatementType(DropStream, drop_stream),
    StatementType(AlterStream, alter_stream),
    StatementType(
        ShowStreams, without_text(show_streams), lambda asked: TERSE_COLUMNS if asked.terse else SHOW_COLUMNS
    ),
    StatementType(DescribeStream, without_text(describe_stream), DESCRIBE_COLUMNS),
    StatementType(ShowCreateStream, without_text(show_create_stream), CREATE_COLUMNS),
    StatementType(SetTableProperties, without_text(set_table_properties)),
    StatementType(BeginTransaction, _in_session(session_transactions.begin)),
    StatementType(CommitTransaction, _in_session(session_transactions.commit)),
    StatementType(RollbackTransaction, _in_session(session_transactions.rollback)),
    StatementType(RollbackStatement, _in_session(session_transactions.rollback_statement)),
)
