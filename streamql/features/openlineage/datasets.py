"""Names of tables, topics and streams as OpenLineage writes them (https://openlineage.io/docs/spec/naming). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from streamql.catalog.states import StreamState, read_position
from streamql.model import Interval, Parts
from streamql.sources.protocol import HIDDEN_TYPE

OBJECT_STORES = {"s3a": "s3", "s3n": "s3", "s3": "s3", "gs": "gs"}
"""The schemes of stores whose names have no leading slash, and how OpenLineage writes them."""


@dataclass(frozen=True)
class DatasetName:
    """A dataset by its namespace and name. `table`: its name in a catalog; empty: it has none, or `name` is that name."""

    namespace: str
    name: str
    table: str = ""


@dataclass(frozen=True)
class Read:
    """A dataset from which a statement read. `version`: the newest version that it read; empty: it has none, or it is not known."""

    dataset: DatasetName
    version: str = ""


@dataclass(frozen=True)
class StreamRead:
    """What a statement read of a stream. `sources`: the tables, or the topic, behind the stream. `is_hidden`: it is the stream of a dynamic
    table, which no catalog shows."""

    uuid: str
    name: str
    mode: str
    sources: tuple[Read, ...]
    is_hidden: bool


def plain(name: str) -> str:
    """Returns a name without Spark's own catalog."""
    return name.removeprefix("spark_catalog.")


def at_path(path: str, name: str) -> DatasetName:
    """Returns the name of a Delta table at a path: a path of the local file system, or a URI. `name`: that of the table in a catalog."""
    parts, table = urlsplit(path), "" if name.startswith("delta.`") else plain(name)
    scheme = parts.scheme
    if scheme in ("", "file"):
        return DatasetName("file", unquote(parts.path) if scheme else path, table)
    if scheme in OBJECT_STORES:
        return DatasetName(f"{OBJECT_STORES[scheme]}://{parts.netloc}", parts.path.lstrip("/") or "/", table)
    return DatasetName(f"{scheme}://{parts.netloc}", parts.path, table)


def named(namespace: str, path: str, table: str) -> DatasetName:
    """Returns the name of a table by its path, or by its name in a catalog if it has no path (`path` is empty)."""
    return at_path(path, table) if path else DatasetName(namespace, plain(table))


def stream_read(
    state: StreamState, event: Mapping[str, Any], namespace: str, outside: tuple[str, str] | None
) -> StreamRead:
    """Returns what a row of the table of events says of a stream. `outside`: the namespace and name of a source outside of Delta; None: it
    is a table, or a query over tables."""
    source = state.stream.source
    interval = _interval(event)
    if outside is not None:
        sources: tuple[Read, ...] = (Read(DatasetName(*outside)),)
    elif interval is None:
        sources = (Read(named(namespace, source.path, str(source.name))),)
    else:
        held = source.holds(interval)
        sources = tuple(Read(named(namespace, t.path, str(t.name)), str(v.through)) for t, v in held)
        sources = sources or (Read(named(namespace, source.path, str(source.name))),)
    is_hidden = source.type_name == HIDDEN_TYPE
    return StreamRead(state.stream.uuid, str(state.name), state.stream.mode.value, sources, is_hidden)


def _interval(event: Mapping[str, Any]) -> Interval | None:
    """Returns the interval of a row; None: it has none."""
    if event.get("through_version") is not None:
        return Interval(event["from_version"], event["through_version"])
    if not event.get("positions"):
        return None
    after, through = (read_position(part) for part in json.loads(event["positions"]))
    return Interval(after, through) if isinstance(through, Parts) else None
