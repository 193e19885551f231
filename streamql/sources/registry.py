"""The registry of the types of sources. Features register them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from streamql.model import Offset, SourceRef
from streamql.names import Name
from streamql.registered import records
from streamql.sources.protocol import Opened, OpenSource, Peek, SourceType

TABLE_TYPE = "table"
"""The type of a source whose JSON form names no type."""


@cache
def _types(records: tuple[Any, ...]) -> Mapping[str, SourceType]:
    return MappingProxyType({type_.name: type_ for record in records for type_ in record.source_types()})


def source_types() -> Mapping[str, SourceType]:
    """Returns all types of sources by name. The name of a source is looked up in this order of types."""
    return _types(records())


def type_of(source: SourceRef) -> SourceType:
    """Returns the type of a source."""
    return source_types()[source.type_name]


def source_json(source: SourceRef) -> dict[str, Any]:
    """Returns the JSON form of a source. A table is written without its type, as in all releases."""
    data = source.to_json()
    return data if source.type_name == TABLE_TYPE else {"type": source.type_name, **data}


def read_source(data: Mapping[str, Any]) -> SourceRef:
    """Returns the source that `source_json` wrote. Raises LookupError, TypeError or ValueError for anything else."""
    return source_types()[data.get("type", TABLE_TYPE)].read(data)


def identified(spark: SparkSession, source: SourceRef, identity: str) -> SourceRef | None:
    """Returns a source whose rows are recognized by another identity: `identity` is the word of a `SourceType`. None: a source of that type
    cannot be. Raises what `SourceType.identify` raises."""
    types = (type_ for type_ in source_types().values() if type_.identity == identity)
    return next((found for type_ in types if (found := type_.identify(spark, source)) is not None), None)


def open_source(spark: SparkSession, source: SourceRef, opened: Opened | None = None) -> OpenSource:
    """Opens a source, even if it was renamed or moved. `opened`: what `open_many` returned for it. Raises STREAM_SOURCE_MISSING,
    STREAM_SOURCE_REPLACED, and the error in `opened`."""
    if isinstance(opened, Exception):
        raise opened
    if opened is not None:
        return opened
    return type_of(source).open(spark, source)


def peek(spark: SparkSession, sources: Sequence[SourceRef]) -> list[Peek | None]:
    """Returns the newest positions of several sources, in their order. Sources of one type are read together. None: that source must be
    opened."""
    found: list[Peek | None] = [None] * len(sources)
    for type_ in source_types().values():
        chosen = [i for i, source in enumerate(sources) if source.type_name == type_.name]
        peeked = type_.peek(spark, [sources[i] for i in chosen]) if chosen else []
        for i, one in zip(chosen, peeked, strict=True):
            found[i] = one
    return found


def open_many(spark: SparkSession, wanted: Sequence[tuple[SourceRef, Offset]]) -> list[Opened | None]:
    """Opens the sources of several streams at once, if their type can do that. `wanted`: each source with its stream's offset. Returns the
    opened sources in their order. None: that source must be opened alone."""
    found: list[Opened | None] = [None] * len(wanted)
    for type_ in source_types().values():
        chosen = [i for i, (source, _) in enumerate(wanted) if source.type_name == type_.name]
        if type_.open_many is not None and chosen:
            for i, one in zip(chosen, type_.open_many(spark, [wanted[i] for i in chosen]), strict=True):
                found[i] = one
    return found


def find_source(spark: SparkSession, name: Name) -> SourceRef | None:
    """Returns the source that a name stands for; None: the name is not a source."""
    return next((found for type_ in source_types().values() if (found := type_.find(spark, name)) is not None), None)
