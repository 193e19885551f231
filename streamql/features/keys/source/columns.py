"""The columns of a table that was replaced: those of its versions before are found by their names. Pure.

A replacement gives columns other physical names, or none, so that their identity is lost. So does SHALLOW CLONE into the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from streamql.changes import schema
from streamql.changes.schema import PHYSICAL_NAME, differences, identity, shown_type, widens
from streamql.delta.log import Json
from streamql.errors import StreamqlError

_MISSING = "__streamql_missing_"


def comparable(old: Json, new: Json, new_version: int, table: str) -> Json:
    """Returns metadata of an earlier version whose columns have the identities of those in `new`: by their names, if the table was replaced
    in between, else as they are.

    Raises INCOMPATIBLE_SCHEMA_CHANGE if the values of a column cannot be shown in its new type. A replacement may turn any type of plain
    values into STRING.
    """
    if old["id"] == new["id"] and schema.shares_columns(old, new):
        schema.check_compatible(schema.Epoch(new_version, old), new, new_version)
        return old
    fields = _alike(schema.fields(old), schema.fields(new))
    before = {identity(f): f for f in fields}
    for field in schema.fields(new):
        was = before.get(identity(field))
        for path, was_type, now_type in () if was is None else differences(field["name"], was["type"], field["type"]):
            if not (widens(was_type, now_type) or _is_text_of(was_type, now_type)):
                raise StreamqlError(
                    "INCOMPATIBLE_SCHEMA_CHANGE",
                    f"column {path} of {table} was {shown_type(was_type)} before the table was replaced, and is {shown_type(now_type)} in "
                    f"version {new_version}: rows of both cannot be compared",
                    hint="CREATE OR REPLACE the stream, or ALTER STREAM … SET OFFSET VERSION n with n at or after that version",
                    column_name=path,
                    version=new_version,
                )
    return {**old, "schemaString": json.dumps({"type": "struct", "fields": fields})}


def has_same_types(old: Json, new: Json) -> bool:
    """Returns whether each column that two metadata have by name has the same type in both. Whether values may be NULL does not count."""
    before = {str(f["name"]).lower(): f for f in schema.fields(old)}
    pairs = [(was, f) for f in schema.fields(new) if (was := before.get(str(f["name"]).lower())) is not None]
    return all(
        schema.has_type_of({**was, "type": _bare(was["type"])}, {**now, "type": _bare(now["type"])})
        for was, now in pairs
    )


def _bare(data_type: Any) -> Any:
    """Returns a type with the names and types of its nested fields, and nothing else."""
    if not isinstance(data_type, Mapping):
        return data_type
    if data_type["type"] == "struct":
        return [(f["name"], _bare(f["type"])) for f in data_type["fields"]]
    return {
        part: _bare(data_type[part]) for part in ("type", "elementType", "keyType", "valueType") if part in data_type
    }


def _alike(old: Sequence[Json], new: Sequence[Json]) -> list[dict[str, Any]]:
    """Returns fields with the identities of the new fields that have their names. Spark compares names without their case."""
    by_name = {str(f["name"]).lower(): f for f in new}
    found = []
    for number, field in enumerate(old):
        now = by_name.get(str(field["name"]).lower())
        physical = identity(now) if now is not None else f"{_MISSING}{number}"
        made = {**field, "metadata": {**(field.get("metadata") or {}), PHYSICAL_NAME: physical}}
        if now is not None:
            made["type"] = _inside(field["type"], now["type"])
        found.append(made)
    return found


def _inside(old: Any, new: Any) -> Any:
    """Returns a type whose nested fields have the identities of those in the new type."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping) or old.get("type") != new.get("type"):
        return old
    if old["type"] == "struct":
        return {**old, "fields": _alike(old["fields"], new["fields"])}
    parts = {"array": ("elementType",), "map": ("keyType", "valueType")}.get(str(old["type"]), ())
    return {**old, **{part: _inside(old[part], new[part]) for part in parts}}


def _is_text_of(was: Any, now: Any) -> bool:
    return now == "string" and isinstance(was, str) and was not in ("binary", "variant")
