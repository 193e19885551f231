"""Statements that streamql has itself: streams, dynamic tables, transactions. They stay as written but for what differs."""

from __future__ import annotations

from streamql.dialect.statements import (
    BeginTransaction,
    CommitTransaction,
    CreateByQuery,
    CreateStream,
    RollbackTransaction,
    SetTableProperties,
    Statement,
)
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import NameParts, TokenType, string_value
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System, Translated
from streamql.features.translate.ordinary.points import points_to_spark
from streamql.features.translate.ordinary.transpile import to_spark
from streamql.features.translate.text.lenient import parse_leniently
from streamql.features.translate.text.names import lowered, sql_name
from streamql.features.translate.text.properties import idle_notes, tracking
from streamql.features.translate.text.relations import names_read

_REFRESH = "no service refreshes the table: run streamql scheduler, or streamql refresh --due from cron"
_MAINTAINED = "a materialized view is as current as its last refresh: run streamql refresh from cron"
_INITIAL_ROWS = "SHOW_INITIAL_ROWS shows the table as it is when the stream is first consumed, not as it was when the stream was made"
_UNKNOWN_VIEW = "the script does not say which tables the view {0} reads: type ALTER TABLE … SET CHANGE_TRACKING = TRUE for each of them"
_UNKNOWN_TABLE = "the script does not create {0}: leave ALTER TABLE {0} out if {0} is a dynamic table or a view"
_LAG_IN_PROPERTIES = "the property target_lag does not schedule refreshes here: write TARGET_LAG = '{}' before AS"
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
    if isinstance(statement, CreateByQuery):
        return _dynamic_table(text, statement, context)
    if isinstance(statement, BeginTransaction):
        context.in_transaction = True
    elif isinstance(statement, CommitTransaction | RollbackTransaction):
        context.in_transaction = False
    elif isinstance(statement, SetTableProperties) and statement.change_tracking is not None:
        context.track([statement.table], statement.change_tracking)
    return Translated((text,))


def _stream(text: str, statement: CreateStream, context: Context) -> Translated:
    if statement.source_type == "EXTERNAL TABLE" and context.system is not System.CLICKZETTA:
        raise NotTranslatedError(_FILES, "load the files into a Delta table, and make the stream on that table")
    text, pointed = points_to_spark(text, context)
    if context.system is System.DATABEND and statement.mode is None:
        text += " APPEND_ONLY = TRUE"  # Databend's default; here the default is STANDARD
    notes = context.once(_INITIAL_ROWS) if statement.show_initial_rows and context.system is System.SNOWFLAKE else ()
    if statement.source_type == "VIEW" and context.view_of(statement.source) is None:
        notes += (_UNKNOWN_VIEW.format(sql_name(statement.source)),)
    before, doubts = _tracked(context.sources_of_stream(statement), context, statement.source_type == "VIEW")
    return Translated((*before, text), (*pointed, *notes, *doubts))


def _dynamic_table(text: str, statement: CreateByQuery, context: Context) -> Translated:
    assert statement.query_span is not None  # of a parsed statement
    sources = names_read(statement.query)
    if (stream := _stream_among(sources, context)) is not None:
        raise NotTranslatedError(
            f"the query reads the stream {sql_name(stream)}, and a dynamic table reads tables and views",
            "CREATE TABLE, and put INSERT or MERGE into a file that this runs: "
            f"streamql run FILE.sql --every 5min --when-has-data {sql_name(stream)}",
        )
    query = to_spark(statement.query, context)
    where = statement.query_span
    text = apply(text, [Splice(where.start, where.end, query.statements[0])])
    notes = list(query.notes)
    if statement.is_scheduled:
        notes += context.once(_REFRESH)
    elif statement.is_materialized_view and context.system is System.SNOWFLAKE:
        notes += context.once(_MAINTAINED)
    notes += idle_notes(text[: where.start])
    lag = _schedule_in_properties(text[: where.start])
    notes += [_LAG_IN_PROPERTIES.format(lag)] if lag and not statement.is_scheduled else []
    before, doubts = _tracked(sources, context, True)
    return Translated((*before, text), (*notes, *doubts))


def _stream_among(names: list[NameParts], context: Context) -> NameParts | None:
    """Returns the first stream that the relations read, themselves or through views of the script; None: they read none."""
    followed = {lowered(stream.source) for stream in context.streams.values()}
    seen: set[NameParts] = set()
    while names:
        name, *names = names
        key = lowered(name)
        if context.is_stream(name) and key not in followed | context.created:
            return name
        if key in context.views and key not in seen:
            seen.add(key)
            names = [*names, *sorted(context.views[key])]
    return None


def _tracked(names: list[NameParts], context: Context, is_by_query: bool) -> tuple[list[str], list[str]]:
    """Returns the statements that switch change tracking on for the tables that need it and do not have it yet, and notes on them.

    `is_by_query`: queries name the tables, and a relation that the script does not create may be no table.
    """
    tables = context.untracked(names)
    context.track(tables)
    unknown = [table for table in tables if is_by_query and not context.creates(table)]
    return [tracking(table) for table in tables], [_UNKNOWN_TABLE.format(sql_name(table)) for table in unknown]


def _schedule_in_properties(text: str) -> str:
    """Returns the value of the property target_lag, which does not schedule refreshes here; empty: the statement has none."""
    tokens = Cursor(text).tokens
    for token, sign, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_lag = token.type is TokenType.STRING and string_value(token).lower() == "target_lag"
        if is_lag and sign.key == "=":
            return string_value(value) if value.type is TokenType.STRING else value.text
    return ""
