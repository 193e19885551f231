"""How AUTO CDC INTO is run: as the MERGE that it is, which consumes the streams that its source reads."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType, TimestampType

from streamql.consume import session_transactions
from streamql.delta.jvm import analyzed, scala, sentence, session_of
from streamql.delta.names import look_up, qualify
from streamql.delta.neutral import neutral_clone
from streamql.delta.rows import small_frame
from streamql.dialect import parse_name
from streamql.engine import StatementType, without_text
from streamql.engine.reads import find_stream
from streamql.engine.suggestions import missing_stream, missing_table
from streamql.errors import StreamqlError
from streamql.features.autocdc.failures import explained
from streamql.features.autocdc.language.statement import AutoCdc, ExplainAutoCdc
from streamql.features.autocdc.plan.assumed import ASSUMES
from streamql.features.autocdc.plan.columns import Tables, resolve
from streamql.features.autocdc.plan.events import INTERVAL_END
from streamql.features.autocdc.plan.text import Merge, merge_of
from streamql.features.autocdc.plan.values import ddl
from streamql.names import Name, quote
from streamql.settings import AUTO_CDC_RETENTION, seconds

COLUMNS = "num_affected_rows BIGINT, num_updated_rows BIGINT, num_deleted_rows BIGINT, num_inserted_rows BIGINT"
EXPLAIN_COLUMNS = "part STRING, text STRING"

_SEQUENCE = "__cdc_seq"


def auto_cdc(spark: SparkSession, statement: AutoCdc, text: str) -> DataFrame:
    """Applies the events of the source to the target, and advances the streams that the source reads: both, or neither. Returns the counts
    of the MERGE. Raises AUTO_CDC_COLUMN, AUTO_CDC_ORDER, AUTO_CDC_CONFLICT, AUTO_CDC_BUSY, and what a MERGE that consumes raises."""
    _refuse(statement)
    _check_source(spark, statement)
    name = qualify(spark, statement.target)
    source, sequence_type = _source(spark, statement)
    if statement.creates and look_up(spark, name).type == "missing":
        _create(spark, statement, name, source, sequence_type)
    merge = merge_of(statement, _tables(spark, statement, name, source), sequence_type)
    if merge.adds:
        _refuse_copy(spark, statement, name, merge)
        _add_columns(spark, name, merge)
    retention = int(seconds(spark, AUTO_CDC_RETENTION) * 1000)
    try:
        jframe = scala(spark).autocdc.AutoCdcStatement.run(
            session_of(spark), merge.text, text, merge.compares, merge.reads_target, merge.state, retention
        )
    except Exception as e:
        raise (explained(e) or _wrong_expression(spark, statement, e) or e) from e
    return DataFrame(jframe, spark)


def explain_auto_cdc(spark: SparkSession, statement: ExplainAutoCdc) -> DataFrame:
    """Returns the MERGE that a statement is, in three parts. Raises what the statement raises before it reads events."""
    asked = statement.statement
    _refuse(asked)
    _check_source(spark, asked)
    source, sequence_type = _source(spark, asked)
    merge = merge_of(asked, _tables(spark, asked, qualify(spark, asked.target), source), sequence_type)
    events = merge.events.replace(INTERVAL_END, "current_timestamp()")  # a function of Spark
    rows = merge.rows.replace(ASSUMES, "false")
    return small_frame(spark, EXPLAIN_COLUMNS, [["events", events], ["rows", rows], ["merge", merge.merge]])


def _refuse(statement: AutoCdc) -> None:
    """Refuses clauses that have no meaning beside each other."""
    where = "write WHERE in the query of the snapshot"
    of_events = "a snapshot has rows, and no events: leave the clause out"
    refused = {
        "APPLY AS TRUNCATE WHEN with STORED AS SCD TYPE 2": (
            statement.truncate_when is not None and statement.history == 2,
            "write APPLY AS DELETE WHEN; or keep a copy",
        ),
        "APPLY AS DELETE WHEN with FROM SNAPSHOT": (statement.is_snapshot and statement.delete_when is not None, where),
        "APPLY AS TRUNCATE WHEN with FROM SNAPSHOT": (
            statement.is_snapshot and statement.truncate_when is not None,
            where,
        ),
        "IGNORE NULL UPDATES with FROM SNAPSHOT": (
            statement.is_snapshot and statement.ignored_nulls is not None,
            of_events,
        ),
        "SEQUENCE BY with FROM SNAPSHOT and SCD TYPE 1": (
            statement.is_snapshot and statement.sequence_by is not None and statement.history == 1,
            of_events,
        ),
    }
    for clause, (is_there, hint) in refused.items():
        if is_there:
            raise StreamqlError("UNSUPPORTED_CLAUSE", f"{clause} is not supported", hint=hint)


def _check_source(spark: SparkSession, statement: AutoCdc) -> None:
    """Raises AUTO_CDC_ORDER for a table in the place of a stream: a table has no changes, and no offset that moves."""
    if statement.is_snapshot:
        return
    try:
        parts = parse_name(statement.source)
    except StreamqlError:
        return  # a query
    if find_stream(spark, parts) is not None or not (statement.is_stream or statement.sequence_by is None):
        return
    name = qualify(spark, parts)
    if look_up(spark, name).type == "missing":
        raise missing_stream(spark, parts)
    raise StreamqlError(
        "AUTO_CDC_ORDER",
        f"{name} is a table, and AUTO CDC INTO applies the changes that a stream shows",
        hint=f"CREATE STREAM s ON TABLE {name} SHOW_INITIAL_ROWS = TRUE; then FROM STREAM s",
    )


def _wrong_expression(spark: SparkSession, statement: AutoCdc, e: Exception) -> StreamqlError | None:
    """Returns SYNTAX_ERROR or AUTO_CDC_COLUMN for a clause whose expression Spark does not take: Spark's error shows a text that the user
    did not write. None: the error has another cause."""
    if not isinstance(e, AnalysisException):
        return None
    clauses = {
        "APPLY AS DELETE WHEN": statement.delete_when,
        "APPLY AS TRUNCATE WHEN": statement.truncate_when,
        "SEQUENCE BY": statement.sequence_by,
    }
    for clause, text in clauses.items():
        if text is not None:
            try:
                spark.sql(f"SELECT * FROM {statement.source}").selectExpr(text)
            except AnalysisException as own:
                code = "SYNTAX_ERROR" if isinstance(own, ParseException) else "AUTO_CDC_COLUMN"
                said = sentence(own).partition(" SQLSTATE")[0]
                return StreamqlError(code, f"{clause} {text}: {said}", hint=f"correct the expression behind {clause}")
    return None


def _tables(spark: SparkSession, statement: AutoCdc, name: Name, source: StructType) -> Tables:
    """Returns the columns of the source and of the target. Raises TABLE_NOT_FOUND, UNSUPPORTED_TARGET."""
    if find_stream(spark, statement.target) is not None:
        raise StreamqlError("UNSUPPORTED_TARGET", f"{name} is a stream", hint="name a Delta table behind INTO")
    found = look_up(spark, name)
    if found.type == "missing":
        raise missing_table(spark, name, creates="WITH (CREATE_TARGET = TRUE) creates the target")
    if found.type == "view":
        raise StreamqlError("UNSUPPORTED_TARGET", f"{name} is a view", hint="name a Delta table behind INTO")
    target = spark.table(name.sql).schema
    is_case_sensitive = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    return Tables(source, target, is_case_sensitive)


def _source(spark: SparkSession, statement: AutoCdc) -> tuple[StructType, DataType | None]:
    """Returns the columns of the source, and the type of the sequence. Raises AUTO_CDC_ORDER for a snapshot that reads a stream."""
    more = "" if statement.sequence_by is None else f", ({statement.sequence_by}) AS {quote(_SEQUENCE)}"
    try:
        rows = spark.sql(f"SELECT *{more} FROM {statement.source}")
    except AnalysisException as e:
        raise (_wrong_expression(spark, statement, e) or e) from e
    if statement.is_snapshot and not scala(spark).plans.Plans.reads(analyzed(rows)).isEmpty():
        raise StreamqlError(
            "AUTO_CDC_ORDER",
            "a snapshot has all rows that there are, and a stream shows changes only",
            hint="write FROM STREAM; or name the table behind FROM SNAPSHOT",
        )
    schema = rows.schema
    if statement.sequence_by is None:
        return schema, TimestampType() if statement.history == 2 else None
    return StructType(schema.fields[:-1]), schema.fields[-1].dataType


def _create(
    spark: SparkSession, statement: AutoCdc, name: Name, source: StructType, sequence_type: DataType | None
) -> None:
    """Creates the target, empty, with the columns that the statement fills."""
    session_transactions.refuse_in_transaction(spark, "AUTO CDC INTO with CREATE_TARGET = TRUE")
    tables = Tables(source, None)
    needed = [f"{c.sql} {ddl(c.source_type)}" for c in resolve(statement, tables).all]
    needed += [f"{quote(added)} {kind}" for added, kind in merge_of(statement, tables, sequence_type).adds]
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name.sql} ({', '.join(needed)}) USING DELTA")


def _refuse_copy(spark: SparkSession, statement: AutoCdc, name: Name, merge: Merge) -> None:
    """Raises AUTO_CDC_COLUMN for a history in a table that has rows without a begin."""
    if statement.history == 1 or spark.table(name.sql).isEmpty():
        return
    columns = ", ".join(f"{column} {kind}" for column, kind in merge.adds)
    raise StreamqlError(
        "AUTO_CDC_COLUMN",
        f"the target {name} has rows, and lacks {' and '.join(column for column, _ in merge.adds)}: nothing tells when they began",
        hint=f"name another target WITH (CREATE_TARGET = TRUE); or ALTER TABLE {name} ADD COLUMNS ({columns}) and fill them",
    )


def _add_columns(spark: SparkSession, name: Name, merge: Merge) -> None:
    columns = ", ".join(f"{quote(column)} {kind}" for column, kind in merge.adds)
    # In a session of its own: a transaction refuses statements that read no stream. If it is rolled back, a column more does no harm.
    try:
        neutral_clone(spark).sql(f"ALTER TABLE {name.sql} ADD COLUMNS ({columns})")
    except Exception:  # two statements may do this at once, of which one fails
        there = {column.lower() for column in spark.table(name.sql).columns}
        if any(column.lower() not in there for column, _ in merge.adds):
            raise


STATEMENTS = (
    StatementType(AutoCdc, auto_cdc, COLUMNS),
    StatementType(ExplainAutoCdc, without_text(explain_auto_cdc), EXPLAIN_COLUMNS),
)
