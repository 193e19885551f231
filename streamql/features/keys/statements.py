"""Runs the statements about primary keys."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from streamql.changes import schema
from streamql.delta import neutral
from streamql.delta.names import qualify
from streamql.delta.rows import Value, small_frame
from streamql.dialect import quote_string
from streamql.dialect.text.tokens import NameParts, Span
from streamql.engine import StatementType, without_text
from streamql.engine.ddl import place_of
from streamql.engine.reads import named_table
from streamql.errors import StreamqlError
from streamql.features.keys.declared import key_columns
from streamql.features.keys.language.statements import AddPrimaryKey, DropPrimaryKey, ShowPrimaryKeys
from streamql.names import Name
from streamql.sources.tables.primary_key import PRIMARY_KEY, is_declared, parse_names, property_text
from streamql.sources.tables.table import OpenTable, open_table

KEY_COLUMNS = "table_name STRING, column_name STRING, key_sequence BIGINT, rely BOOLEAN"


def add_primary_key(spark: SparkSession, statement: AddPrimaryKey) -> None:
    """Declares the key of a table. Checks its columns, and no row. Raises TABLE_NOT_FOUND, NOT_A_DELTA_TABLE, INVALID_PROPERTY,
    PRIMARY_KEY_DECLARED."""
    name, table = _table(spark, statement.table, statement.table_span)
    key = key_columns(statement.columns, schema.fields(table.snapshot.metadata), str(name))
    known = _declared(table)
    if [c.lower() for c in known] == [c.lower() for c in key]:
        return
    names = {name.lower() for name in schema.column_names(table.snapshot.metadata)}
    if known and all(
        name.lower() in names for name in known
    ):  # else the declaration is void: a column of it was renamed or dropped
        raise StreamqlError(
            "PRIMARY_KEY_DECLARED",
            f"{name} declares the primary key ({', '.join(known)})",
            hint=f"ALTER TABLE {name} DROP PRIMARY KEY, and declare the other one",
            **place_of(statement.table_span),
        )
    entry = f"{quote_string(PRIMARY_KEY)} = {quote_string(property_text(key))}"
    neutral.run(spark, f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({entry})")


def drop_primary_key(spark: SparkSession, statement: DropPrimaryKey) -> None:
    """Takes the declaration of a key back. Streams that recognize rows by it keep it. Raises TABLE_NOT_FOUND, NOT_A_DELTA_TABLE,
    PRIMARY_KEY_NOT_DECLARED."""
    name, table = _table(spark, statement.table, statement.table_span)
    if _declared(table):
        neutral.run(spark, f"ALTER TABLE {name.sql} UNSET TBLPROPERTIES ({quote_string(PRIMARY_KEY)})")
    elif not statement.if_exists:
        raise StreamqlError(
            "PRIMARY_KEY_NOT_DECLARED",
            f"{name} declares no primary key",
            hint="DROP PRIMARY KEY IF EXISTS",
            **place_of(statement.table_span),
        )


def show_primary_keys(spark: SparkSession, statement: ShowPrimaryKeys) -> DataFrame:
    """Returns the columns of a table's key, in their order. There are none if it declares no key."""
    name, table = _table(spark, statement.table, statement.table_span)
    rows: list[list[Value]] = [[str(name), column, number, True] for number, column in enumerate(_declared(table), 1)]
    return small_frame(spark, KEY_COLUMNS, rows)


def _table(spark: SparkSession, parts: NameParts, span: Span | None) -> tuple[Name, OpenTable]:
    where = place_of(span)
    name = qualify(spark, parts)
    return name, open_table(spark, named_table(spark, name, where.get("line"), where.get("column")))


def _declared(table: OpenTable) -> tuple[str, ...]:
    """Returns the columns of the key as the property has them; empty: none is declared."""
    properties = table.snapshot.configuration
    return parse_names(properties[PRIMARY_KEY], str(table.ref.name)) if is_declared(properties) else ()


STATEMENTS = (
    StatementType(AddPrimaryKey, without_text(add_primary_key)),
    StatementType(DropPrimaryKey, without_text(drop_primary_key)),
    StatementType(ShowPrimaryKeys, without_text(show_primary_keys), KEY_COLUMNS),
)
