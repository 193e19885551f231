"""The schemas of an interval. Its rows are shown in the schema of its last version, and columns are matched by their identity. Pure.

The identity of a column is its physical name if column mapping is on (Delta, PROTOCOL.md, "Column Mapping"), else its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamql.delta.log import Commit, Json
from streamql.errors import StreamqlError
from streamql.model import METADATA_COLUMNS

PHYSICAL_NAME = "delta.columnMapping.physicalName"
MAPPING_MODE = "delta.columnMapping.mode"

OWN_PREFIX = "__streamql_"
"""The prefix of the names of columns that scans add to a table's own."""

_WIDER: Mapping[str, frozenset[str]] = {
    "byte": frozenset({"short", "integer", "long", "double"}),
    "short": frozenset({"integer", "long", "double"}),
    "integer": frozenset({"long", "double"}),
    "float": frozenset({"double"}),
    "date": frozenset({"timestamp_ntz"}),
}
"""Type changes that Delta's reader applies to old files (PROTOCOL.md, "Type Widening"). Those of decimals are in `widens`."""

_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}


@dataclass(frozen=True)
class Epoch:
    """A span of versions with the same metadata. `version`: its first one."""

    version: int
    metadata: Json


def epochs(start: Json, after: int, commits: Sequence[Commit]) -> list[Epoch]:
    """Returns the metadata at the version `after`, then each one that a commit of the interval brought."""
    return [Epoch(after, start), *(Epoch(c.version, c.metadata) for c in commits if c.metadata is not None)]


def changed_types(epochs: Sequence[Epoch]) -> frozenset[str]:
    """Returns the identities of the columns whose type differs between two epochs, including NOT NULL inside the type."""
    types: dict[str, Any] = {}
    changed = set()
    for epoch in epochs if len(epochs) > 1 else ():
        for field in fields(epoch.metadata):
            if types.setdefault(identity(field), field["type"]) != field["type"]:
                changed.add(identity(field))
    return frozenset(changed)


def fields(metadata: Json) -> list[Json]:
    """Returns the columns of a table, as Spark's JSON schema has them."""
    return list(json.loads(metadata["schemaString"])["fields"])


def identity(field: Json) -> str:
    """Returns the identity of a column, which stays the same if the column is renamed."""
    return str((field.get("metadata") or {}).get(PHYSICAL_NAME, field["name"]))


def check_reserved(metadata: Json, table: str, **where: int | None) -> None:
    """Raises RESERVED_COLUMN_NAME if a column is named like a metadata column of streams."""
    check_names(column_names(metadata), table, None, **where)


def check_names(names: Iterable[str], table: str, hint: str | None = None, **where: int | None) -> None:
    """Raises RESERVED_COLUMN_NAME if one of the columns of a table or query is named like a metadata column. `hint`: how to rename it;
    None: by ALTER TABLE."""
    for name in names:
        if name.lower() in METADATA_COLUMNS or name.lower().startswith(OWN_PREFIX):
            raise StreamqlError(
                "RESERVED_COLUMN_NAME",
                f"{table} has a column {name}, which is the name of a metadata column of streams",
                hint=hint or f"ALTER TABLE {table} RENAME COLUMN {name} TO …",
                column_name=name,
                **where,
            )


def column_names(metadata: Json) -> list[str]:
    """Returns the names of the columns, in the table's order."""
    return [f["name"] for f in fields(metadata)]


def physical_partition_columns(metadata: Json) -> frozenset[str]:
    """Returns the partition columns by the names that the log's partitionValues have."""
    names = {f["name"]: identity(f) for f in fields(metadata)}
    return frozenset(names.get(c, c) for c in metadata.get("partitionColumns") or ())


def has_type_of(was: Json, now: Json) -> bool:
    """Returns whether two fields have the same type and the same collations, which JSON has in the field's metadata."""
    collations = [(field.get("metadata") or {}).get("__COLLATIONS") for field in (was, now)]
    return bool(was["type"] == now["type"] and collations[0] == collations[1])


def has_same_columns(was: Json, now: Json) -> bool:
    """Returns whether every name that both metadata have is the name of the same column in both, with the same type and nested fields."""
    before = {f["name"].lower(): f for f in fields(was)}
    return all(
        identity(old) == identity(new) and has_type_of(old, new)
        for new in fields(now)
        if (old := before.get(new["name"].lower())) is not None
    )


def is_mapped(metadata: Json) -> bool:
    """Returns whether column mapping is on, so that columns can be renamed."""
    return bool((metadata.get("configuration") or {}).get(MAPPING_MODE, "none") != "none")


def shares_columns(was: Json, now: Json) -> bool:
    """Returns whether a column of one metadata is one of the other's, by its identity. If a clone replaced the table, none is."""
    before = {identity(f) for f in fields(was)}
    return not before or any(identity(f) in before for f in fields(now))


def _check_mapping(old: Epoch, new: Json, new_version: int) -> None:
    """Checks that files of both metadata have the same names for the columns. They do not if column mapping was switched on or off in
    between, and has physical names of its own. Raises INCOMPATIBLE_SCHEMA_CHANGE."""
    was_mapped = is_mapped(old.metadata)
    if was_mapped == is_mapped(new):
        return
    mapped, plain = (old.metadata, new) if was_mapped else (new, old.metadata)
    named = {f["name"] for f in fields(plain)}
    for field in fields(mapped):
        if identity(field) != field["name"] and field["name"] in named:
            raise StreamqlError(
                "INCOMPATIBLE_SCHEMA_CHANGE",
                f"column mapping was switched {'off' if was_mapped else 'on'} up to version {new_version}, and files of the interval "
                f"call column {field['name']} by two names",
                hint="CREATE OR REPLACE the stream, or ALTER STREAM … SET OFFSET VERSION n with n at or after that version",
                column_name=field["name"],
                version=new_version,
            )


def check_compatible(old: Epoch, new: Json, new_version: int) -> None:
    """Raises INCOMPATIBLE_SCHEMA_CHANGE if a row image that was written under `old` cannot be shown in the columns of `new`."""
    _check_mapping(old, new, new_version)
    if is_mapped(new) and not shares_columns(old.metadata, new):
        raise StreamqlError(
            "INCOMPATIBLE_SCHEMA_CHANGE",
            f"up to version {new_version}, the table was replaced by a clone, whose columns have other physical names",
            hint="ALTER TABLE … ADD PRIMARY KEY (…) RELY, and ALTER STREAM … SET IDENTITY = KEY, which finds columns by their names; or "
            "ALTER STREAM … SET OFFSET VERSION n with n at or after that version",
            version=new_version,
        )
    before = {identity(f): f for f in fields(old.metadata)}
    for field in fields(new):
        other = before.get(identity(field))
        if other is None:
            continue
        for path, was, now in differences(field["name"], other["type"], field["type"]):
            if not widens(was, now):
                raise StreamqlError(
                    "INCOMPATIBLE_SCHEMA_CHANGE",
                    f"column {path} was {shown_type(was)} up to version {new_version - 1 if new_version else 0} and is "
                    f"{shown_type(now)} since: the interval holds rows of both",
                    hint="CREATE OR REPLACE the stream, or ALTER STREAM … SET OFFSET VERSION n with n at or after that version",
                    column_name=path,
                    version=new_version,
                )


def differences(path: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields (path, old type, new type) of each leaf in which two types differ. Fields of structs are matched by their identity."""
    if isinstance(was, Mapping) and isinstance(now, Mapping) and was.get("type") == now.get("type"):
        data_type = now["type"]
        if data_type == "struct":
            before = {identity(f): f for f in was["fields"]}
            for f in now["fields"]:
                if identity(f) in before:
                    yield from differences(f"{path}.{f['name']}", before[identity(f)]["type"], f["type"])
            return
        parts = {"array": ("elementType",), "map": ("keyType", "valueType")}.get(data_type, ())
        for part in parts:
            yield from differences(f"{path}.{part.removesuffix('Type')}", was[part], now[part])
        if parts:
            return
    if was != now:
        yield path, was, now


def widens(was: Any, now: Any) -> bool:
    """Returns whether values written as `was` can be read as `now`."""
    if not isinstance(was, str) or not isinstance(now, str):
        return False
    if now in _WIDER.get(was, frozenset()):
        return True
    new = _decimal(now)
    if new is None:
        return False
    old = _decimal(was)
    precision, scale = old if old is not None else (_DIGITS.get(was, 99), 0)
    return new[1] >= scale and new[0] - new[1] >= precision - scale


def _decimal(name: str) -> tuple[int, int] | None:
    if not name.startswith("decimal("):
        return None
    precision, scale = name[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def shown_type(data_type: Any) -> str:
    """Returns a type as messages name it: a nested one by its kind, such as struct."""
    return data_type if isinstance(data_type, str) else str(data_type.get("type", data_type))
