"""What a table declares as its key, checked against its columns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamql.errors import StreamqlError
from streamql.misspelt import suggestion
from streamql.names import quote_if_needed
from streamql.sources.tables.primary_key import PRIMARY_KEY, is_declared, parse_names

KEY_TYPES = frozenset(
    ("byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "date", "timestamp", "timestamp_ntz")
)  # fmt: skip
"""Types of key columns as Spark's JSON schema has them, besides decimals. Rows can be grouped by them."""


def declared_key(configuration: Mapping[str, str], fields: Sequence[Mapping[str, Any]], table: str) -> tuple[str, ...]:
    """Returns the columns of the key that the properties of a table declare, in the table's spelling.

    `fields`: the columns of the table, as Spark's JSON schema has them. `table`: its name, for messages. Raises PRIMARY_KEY_NOT_DECLARED,
    INVALID_PROPERTY.
    """
    if not is_declared(configuration):
        key = quote_if_needed(str(fields[0]["name"])) if fields else "column"
        raise StreamqlError(
            "PRIMARY_KEY_NOT_DECLARED",
            f"{table} declares no primary key, and IDENTITY = KEY recognizes rows by it",
            hint=f"ALTER TABLE {table} ADD PRIMARY KEY ({key}) RELY, with the columns of the key",
            table=table,
        )
    return key_columns(parse_names(configuration[PRIMARY_KEY], table), fields, table)


def check_new(table: str, properties: Mapping[str, str], fields: Sequence[Mapping[str, Any]]) -> None:
    """Checks the key that a new table declares, before anything is made. Raises INVALID_PROPERTY, as ALTER TABLE does."""
    if is_declared(properties):
        key_columns(parse_names(properties[PRIMARY_KEY], table), fields, table, exists=False)


def key_columns(
    names: Sequence[str], fields: Sequence[Mapping[str, Any]], table: str, *, exists: bool = True
) -> tuple[str, ...]:
    """Returns columns of a key in the table's spelling. Raises INVALID_PROPERTY if the table lacks one of them, or if its type cannot be of
    a key. `exists`: the table has been made, so that DESCRIBE shows it."""
    by_name = {str(field["name"]).lower(): field for field in fields}
    columns = []
    for name in names:
        field = by_name.get(name.lower())
        if field is None:
            known = [str(f["name"]) for f in fields]
            shows = f"DESCRIBE TABLE {table} shows its columns" if exists else f"the columns are {', '.join(known)}"
            hint = suggestion(name, known) or shows
            raise StreamqlError(
                "INVALID_PROPERTY", f"the key of {table} has the column {name}, which it lacks", hint=hint
            )
        data_type = field["type"]
        if not isinstance(data_type, str) or not (data_type in KEY_TYPES or data_type.startswith("decimal(")):
            shown = data_type if isinstance(data_type, str) else str(data_type.get("type"))
            raise StreamqlError(
                "INVALID_PROPERTY",
                f"the key of {table} has the column {field['name']} of type {shown}",
                hint="columns of a key have numbers, STRING, BINARY, BOOLEAN, DATE, TIMESTAMP or TIMESTAMP_NTZ",
            )
        columns.append(str(field["name"]))
    return tuple(columns)
