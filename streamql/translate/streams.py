"""Statements that streamql has itself: streams, dynamic tables, transactions. They stay as written but for what differs."""

from __future__ import annotations

from streamql.dialect.dynamic.statements import CreateDynamicTable
from streamql.dialect.splices import Splice, apply
from streamql.dialect.statements import (
    BeginTransaction,
    CommitTransaction,
    CreateStream,
    RollbackTransaction,
    SetTableProperties,
    Statement,
)
from streamql.model import SourceType
from streamql.translate.context import Context, lowered, sources_of, stream_sources, tracking
from streamql.translate.lenient import parse_leniently
from streamql.translate.model import NotTranslatedError, System, Translated
from streamql.translate.transpile import points_to_spark, to_spark

_REFRESH = "no service refreshes the table: run streamql refresh --due from cron, or streamql refresh --loop"
_MAINTAINED = "a materialized view is as current as its last refresh: run streamql refresh from cron"
_INITIAL_ROWS = "SHOW_INITIAL_ROWS shows the table as it is when the stream is first consumed, not as it was when the stream was made"
_FILES = "a stream on an external table of files: streamql's external tables are Kafka topics"


def by_streamql(text: str, context: Context) -> Translated | None:
    """Returns the translation of a statement of streamql's own; None: it is not one. Raises StreamqlError, NotTranslatedError."""
    statement, text, notes = parse_leniently(text)
    if statement is None:
        return None
    translated = _adapted(text, statement, context)
    return Translated(translated.statements, (*notes, *translated.notes))


def _adapted(text: str, statement: Statement, context: Context) -> Translated:
    if isinstance(statement, CreateStream):
        return _stream(text, statement, context)
    if isinstance(statement, CreateDynamicTable):
        return _dynamic_table(text, statement, context)
    if isinstance(statement, BeginTransaction):
        context.in_transaction = True
    elif isinstance(statement, CommitTransaction | RollbackTransaction):
        context.in_transaction = False
    elif isinstance(statement, SetTableProperties) and statement.change_tracking:
        context.tracked.add(lowered(statement.table))
    return Translated((text,))


def _stream(text: str, statement: CreateStream, context: Context) -> Translated:
    if statement.source_type is SourceType.EXTERNAL_TABLE and context.system is not System.CLICKZETTA:
        raise NotTranslatedError(_FILES, "load the files into a Delta table, and make the stream on that table")
    text, pointed = points_to_spark(text, context)
    if context.system is System.DATABEND and statement.mode is None:
        text += " APPEND_ONLY = TRUE"  # Databend's default; here the default is STANDARD
    notes = context.once(_INITIAL_ROWS) if statement.show_initial_rows and context.system is System.SNOWFLAKE else ()
    return Translated((*_tracked(stream_sources(statement), context), text), (*pointed, *notes))


def _dynamic_table(text: str, statement: CreateDynamicTable, context: Context) -> Translated:
    assert statement.query_span is not None  # of a parsed statement
    query = to_spark(statement.query, context)
    where = statement.query_span
    text = apply(text, [Splice(where.start, where.end, query.statements[0])])
    notes = list(query.notes)
    if statement.schedule is not None:
        notes += context.once(_REFRESH)
    elif statement.is_materialized_view and context.system is System.SNOWFLAKE:
        notes += context.once(_MAINTAINED)
    return Translated((*_tracked(sources_of(statement.query), context), text), tuple(notes))


def _tracked(names: list[tuple[str, ...]], context: Context) -> list[str]:
    """Returns the statements that switch change tracking on for the tables that need it and do not have it yet."""
    tables = context.untracked(names)
    context.tracked.update(lowered(table) for table in tables)
    return [tracking(table) for table in tables]
