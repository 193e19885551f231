"""The stored form of definitions, which are entries of the catalog like streams. Earlier releases treat them as unreadable entries.
Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamql.catalog.states import FORMAT_OF_SOURCES, StreamState, decoded, read_count
from streamql.catalog.states import encode as encode_stream
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType

Entry = StreamState | Definition
"""What the catalog keeps under an id and a name."""

_TYPE = "entry"
"""The field of the JSON form that only definitions have, and streams do not."""


def uuid_of(entry: Entry) -> str:
    """Returns the id of an entry."""
    return entry.uuid if isinstance(entry, Definition) else entry.stream.uuid


def encode(entry: Entry) -> str:
    """Returns the JSON form of an entry."""
    if isinstance(entry, StreamState):
        return encode_stream(entry)
    return json.dumps(
        {
            "format": FORMAT_OF_SOURCES,
            _TYPE: entry.type.value,
            "uuid": entry.uuid,
            "name": list(entry.name.parts),
            "options": dict(entry.options),
            "comment": entry.comment,
            "created_at_ms": entry.created_at_ms,
            "created_by": entry.created_by,
            "text": entry.text,
            "connection": entry.connection,
            "columns": list(entry.columns),
            "sequence": entry.sequence,
        },
        sort_keys=True,
    )


def decode(text: str) -> Entry:
    """Returns the entry that a JSON form holds. Raises CATALOG_UNREADABLE if streamql did not write it, or a newer streamql wrote it."""
    return decoded(text, _read_definition)


def _read_definition(data: Mapping[str, Any]) -> Definition | None:
    if _TYPE not in data:
        return None
    return Definition(
        uuid=data["uuid"],
        type=DefinitionType(data[_TYPE]),
        name=Name.of(data["name"]),
        options={str(k): str(v) for k, v in data["options"].items()},
        comment=data["comment"],
        created_at_ms=read_count(data["created_at_ms"]),
        created_by=data["created_by"],
        text=data["text"],
        connection=data["connection"],
        columns=tuple(map(str, data["columns"])),
        sequence=read_count(data["sequence"]),
    )
