"""The types of sources there are: those that features register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from streamql.feature import Feature, features
from streamql.model import Offset, SourceRef
from streamql.names import Name
from streamql.sources.protocol import Opened, OpenSource, Peek, SourceType

TABLE_TYPE = "table"
"""The name of the type that a source has which is written without one."""


@cache
def _types(_: Sequence[Feature]) -> Mapping[str, SourceType]:
    return MappingProxyType({type_.name: type_ for feature in features() for type_ in feature.source_types()})


def source_types() -> Mapping[str, SourceType]:
    """Returns all types, by name. In this order a name is looked up."""
    return _types(tuple(features()))


def type_of(source: SourceRef) -> SourceType:
    """Returns the type of a source."""
    return source_types()[source.type_name]


def source_json(source: SourceRef) -> dict[str, Any]:
    """Returns a source as JSON has it. A table is written without its type, as all releases write it."""
    data = source.to_json()
    return data if source.type_name == TABLE_TYPE else {"type": source.type_name, **data}


def read_source(data: Mapping[str, Any]) -> SourceRef:
    """Returns the source that `source_json` wrote. Raises LookupError, TypeError or ValueError for anything else."""
    return source_types()[data.get("type", TABLE_TYPE)].read(data)


def open_source(spark: SparkSession, source: SourceRef, opened: Opened | None = None) -> OpenSource:
    """Finds a source again, wherever it is now. `opened`: as `open_many` returned it. Raises STREAM_SOURCE_MISSING, STREAM_SOURCE_REPLACED,
    and the error that stands for the source in `opened`."""
    if isinstance(opened, Exception):
        raise opened
    if opened is not None:
        return opened
    return type_of(source).open(spark, source)


def peek(spark: SparkSession, sources: Sequence[SourceRef]) -> list[Peek | None]:
    """Returns the version of each of several sources: those of a type are read together. None: that one must be opened."""
    found: list[Peek | None] = [None] * len(sources)
    for type_ in source_types().values():
        chosen = [i for i, source in enumerate(sources) if source.type_name == type_.name]
        peeked = type_.peek(spark, [sources[i] for i in chosen]) if chosen else []
        for i, one in zip(chosen, peeked, strict=True):
            found[i] = one
    return found


def open_many(spark: SparkSession, wanted: Sequence[tuple[SourceRef, Offset]]) -> list[Opened | None]:
    """Returns the sources of several streams, with their offsets: those of a type that opens several at once. None: that one is to be
    opened alone."""
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
