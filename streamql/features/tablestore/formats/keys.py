"""The primary key of a table as records have it: columns of types that can be hashed, and the hash of it by which rows are sharded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.hashing import xxhash64
from streamql.features.tablestore.formats.values import Value, text_of
from streamql.misspelt import suggestion
from streamql.names import quote, quote_if_needed
from streamql.sources.tables.primary_key import PRIMARY_KEY, parse_names, wrong_key

_INTEGERS = frozenset({"byte", "short", "integer", "long"})

HASHED_TYPES: Mapping[str, str] = {
    **dict.fromkeys(_INTEGERS, "bigint"),
    "string": "string",
    "binary": "binary",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
"""The SQL type as which a key column is hashed, by its type in Spark's JSON schema. Integers hash alike, however wide they are, so that a
column can be widened. Decimals are hashed as they are."""


@dataclass(frozen=True)
class KeyColumn:
    """A column of the key: its name in the table's spelling, and its type as Spark's JSON schema has it."""

    name: str
    type: str

    @property
    def hashed_type(self) -> str:
        """Returns the SQL type as which its values are hashed."""
        return hashed_type(self.type)


@dataclass(frozen=True)
class PrimaryKey:
    """The columns of a primary key, in the order of its declaration."""

    columns: tuple[KeyColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def hashed_types(self) -> tuple[str, ...]:
        """Returns the SQL types as which the columns are hashed. A shard tree keeps those that it was made with."""
        return tuple(column.hashed_type for column in self.columns)

    def text(self, values: Sequence[Value | None]) -> str:
        """Returns a key for messages: (id = 3, region = north)."""
        return key_text(self.names, values)


def key_text(names: Sequence[str], values: Sequence[Value | None]) -> str:
    """Returns a key for messages: (id = 3, region = north)."""
    parts = (f"{name} = {'NULL' if v is None else text_of(v)}" for name, v in zip(names, values, strict=True))
    return f"({', '.join(parts)})"


def hashed_type(data_type: str) -> str:
    """Returns the SQL type as which a type of Spark's JSON schema is hashed. Raises KeyError if no key can have it."""
    return data_type if data_type.startswith("decimal(") else HASHED_TYPES[data_type]


def declared(configuration: Mapping[str, str], fields: Sequence[Mapping[str, Any]], table: str) -> PrimaryKey:
    """Returns the primary key that the properties of a table declare.

    `fields`: its columns as Spark's JSON schema has them. `table`: its name as SQL takes it, for messages. Raises
    PRIMARY_KEY_NOT_DECLARED; INVALID_PROPERTY if the property cannot be read, or names a column that no key can have.
    """
    text = configuration.get(PRIMARY_KEY, "")
    if not text.strip():
        key = quote_if_needed(str(fields[0]["name"])) if fields else "column"
        raise StreamqlError(
            "PRIMARY_KEY_NOT_DECLARED",
            f"{table} declares no primary key, which names the rows of records",
            hint=f"ALTER TABLE {table} ADD PRIMARY KEY ({key}) RELY, with the columns of the key",
        )
    by_name = {str(field["name"]).lower(): field for field in fields}
    columns = []
    for name in parse_names(text, table):
        field = by_name.get(name.lower())
        if field is None:
            renamed = (
                f"ALTER TABLE {table} SET TBLPROPERTIES ('{PRIMARY_KEY}' = '…'), with its new name if it was renamed"
            )
            hint = suggestion(name, (str(f["name"]) for f in fields))
            raise wrong_key(table, f"has no column {name}", hint or renamed)
        columns.append(KeyColumn(str(field["name"]), _key_type(field, table)))
    return PrimaryKey(tuple(columns))


def _key_type(field: Mapping[str, Any], table: str) -> str:
    data_type = field["type"]
    if (field.get("metadata") or {}).get("__COLLATIONS"):
        raise wrong_key(
            table,
            f"names {field['name']}, whose collation makes different texts equal",
            "name columns without a collation",
        )
    if not isinstance(data_type, str) or not (data_type in HASHED_TYPES or data_type.startswith("decimal(")):
        shown = data_type if isinstance(data_type, str) else str(data_type.get("type"))
        types = "integers, DECIMAL, STRING, BINARY, BOOLEAN, DATE, TIMESTAMP"
        raise wrong_key(table, f"names {field['name']} of type {shown}", f"columns of a key are {types}")
    return data_type


def bucket_sql(columns: Sequence[str], hashed_types: Sequence[str], count: int) -> str:
    """Returns the SQL expression for the number of a key's bucket, a BIGINT from 0 to `count` - 1.

    `columns`: names of columns, unquoted. `hashed_types`: those of the shard tree. A value that the hashed type cannot hold, because the
    column was widened since, is hashed as NULL.
    """
    values = (f"try_cast({quote(c)} AS {t.upper()})" for c, t in zip(columns, hashed_types, strict=True))
    return f"pmod(xxhash64({', '.join(values)}), {count}L)"


def bucket(values: Sequence[Value | None], hashed_types: Sequence[str], count: int) -> int:
    """Returns the number of a key's bucket, as `bucket_sql` computes it, for values of the hashed types."""
    return xxhash64(values, hashed_types) % count
