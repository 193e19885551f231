"""Column lineage: from the lineage that the extension found to the facets of OpenLineage. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openlineage.client.facet_v2 import column_lineage_dataset as lineage_facet
from openlineage.client.facet_v2 import schema_dataset

from streamql.features.openlineage.datasets import DatasetName, Read, StreamRead, named
from streamql.model import METADATA_COLUMNS

_DIRECT = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")
Ways = frozenset[str]
Origins = dict[tuple[DatasetName, str], Ways]
"""Columns of datasets, each with the ways by which it has come (subtypes of OpenLineage)."""


@dataclass(frozen=True)
class Columns:
    """What is known of the columns of a statement. `inputs`: tables that it reads beside streams. `schemas`: (name, type) of the columns of
    datasets. `stream_columns`: the same of streams, by their ids. `output`: of the target. `facet`: None: no column of the target comes
    from a column that was read."""

    inputs: tuple[Read, ...] = ()
    schemas: Mapping[DatasetName, Sequence[tuple[str, str]]] = field(default_factory=dict)
    stream_columns: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    output: Sequence[tuple[str, str]] = ()
    facet: lineage_facet.ColumnLineageDatasetFacet | None = None


def stream_dataset(namespace: str, read: StreamRead) -> DatasetName:
    """Returns a stream as a dataset."""
    return DatasetName(namespace, read.name)


def columns_of(lineage: str, reads: Mapping[str, StreamRead], namespace: str) -> Columns:
    """Returns the columns of a statement. `lineage`: as `claims.began` makes it. `reads`: what it read of streams, by their ids."""
    found = json.loads(lineage)
    schemas: dict[DatasetName, list[tuple[str, str]]] = {}
    streams: dict[str, list[tuple[str, str]]] = {}
    tables: dict[DatasetName, Read] = {}
    inputs: list[tuple[str, DatasetName | None]] = []
    for one in found["inputs"]:
        columns = [(c["name"], c["type"]) for c in one["columns"]]
        if one["stream"]:
            uuid = str(json.loads(one["stream"])["uuid"])
            inputs.append((uuid, None))
            streams[uuid] = columns
            continue
        dataset = named(namespace, one["path"], one["name"])
        inputs.append(("", dataset))
        schemas[dataset] = columns
        tables[dataset] = Read(dataset, str(one["version"]) if one["version"] >= 0 else "")
    behind = {
        uuid: _Behind(reads[uuid], found["queries"].get(uuid), namespace, schemas) for uuid in streams if uuid in reads
    }

    def origins(given: Sequence[Mapping[str, Any]]) -> Origins:
        all_: Origins = {}
        for one in given:
            uuid, dataset = inputs[one["input"]]
            ways = frozenset(one["ways"])
            if dataset is not None:
                _add(all_, (dataset, one["field"]), ways)
            elif uuid in behind:
                for place, more in behind[uuid].of(one["field"], ways):
                    _add(all_, place, more)
        return all_

    for uuid, one in behind.items():
        one.schemas_into(schemas, streams[uuid])
    fields = {name: _fields(origins(given)) for name, given in found["columns"].items()}
    rows = origins(found["rows"])
    for one in behind.values():
        for place, ways in one.rows():
            _add(rows, place, ways)
    output = [(c["name"], c["type"]) for c in found["output"]]
    fields = {name: one for name, one in fields.items() if one}
    facet = (
        lineage_facet.ColumnLineageDatasetFacet(
            fields={name: lineage_facet.Fields(inputFields=one) for name, one in fields.items()}, dataset=_fields(rows)
        )
        if fields
        else None
    )
    return Columns(tuple(tables.values()), schemas, streams, output, facet)


class _Behind:
    """The columns behind those of a stream: its own, if users see the stream, and those of its sources. `query`: the lineage of the query
    that the stream is on; None: it is on a table or a topic, whose columns have the names of the stream's."""

    def __init__(
        self,
        read: StreamRead,
        query: Mapping[str, Any] | None,
        namespace: str,
        schemas: dict[DatasetName, list[tuple[str, str]]],
    ) -> None:
        self._read = read
        self._query = query
        self._stream = None if read.is_hidden else stream_dataset(namespace, read)
        self._inputs: list[DatasetName] = []
        for one in () if query is None else query["inputs"]:
            dataset = named(namespace, one["path"], one["name"])
            self._inputs.append(dataset)
            schemas[dataset] = [(c["name"], c["type"]) for c in one["columns"]]

    def schemas_into(
        self, schemas: dict[DatasetName, list[tuple[str, str]]], columns: Sequence[tuple[str, str]]
    ) -> None:
        """Adds the columns of the source, if they are those of the stream."""
        if self._query is None:
            own = [c for c in columns if c[0] not in METADATA_COLUMNS]
            schemas.update({source.dataset: own for source in self._read.sources})

    def of(self, column: str, ways: Ways) -> Iterator[tuple[tuple[DatasetName, str], Ways]]:
        """Yields the columns behind a column of the stream."""
        if self._stream is not None:
            yield (self._stream, column), ways
        if column in METADATA_COLUMNS:
            return
        if self._query is None:
            for source in self._read.sources:
                yield (source.dataset, column), ways
            return
        for one in self._query["columns"].get(column, ()):
            yield (self._inputs[one["input"]], one["field"]), _along(frozenset(one["ways"]), ways)

    def rows(self) -> Iterator[tuple[tuple[DatasetName, str], Ways]]:
        """Yields the columns on which it depends which rows the query has."""
        for one in () if self._query is None else self._query["rows"]:
            yield (self._inputs[one["input"]], one["field"]), frozenset(one["ways"])


def _along(first: Ways, then: Ways) -> Ways:
    """Returns the ways of a column that has come by `first` and is then used by `then`, as the Scala object `Ways` does."""

    def both(a: str, b: str) -> str:
        if a in _DIRECT and b in _DIRECT:
            return _DIRECT[max(_DIRECT.index(a), _DIRECT.index(b))]
        return b if a in _DIRECT else a

    return frozenset(both(a, b) for a in first for b in then)


def _add(origins: Origins, place: tuple[DatasetName, str], ways: Ways) -> None:
    origins[place] = origins.get(place, frozenset()) | ways


def _fields(origins: Origins) -> list[lineage_facet.InputField]:
    return [
        lineage_facet.InputField(
            namespace=dataset.namespace,
            name=dataset.name,
            field=column,
            transformations=[
                lineage_facet.Transformation(type="DIRECT" if way in _DIRECT else "INDIRECT", subtype=way)
                for way in sorted(ways)
            ],
        )
        for (dataset, column), ways in origins.items()
    ]


def schema_facet(columns: Sequence[tuple[str, str]]) -> schema_dataset.SchemaDatasetFacet:
    """Returns the columns of a dataset as a facet."""
    fields = [schema_dataset.SchemaDatasetFacetFields(name=name, type=type_) for name, type_ in columns]
    return schema_dataset.SchemaDatasetFacet(fields=fields)
