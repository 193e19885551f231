"""Events of assets, from the ledger: a table that a run has written, and a stream that it has moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dagster import AssetKey, AssetMaterialization, AssetObservation, MetadataValue

from streamql.dialect import parse_name
from streamql.errors import StreamqlError
from streamql.integrations.results import Run

SESSION_CATALOG = "spark_catalog"
SCHEMA_DEFAULT = "default"


def asset_key(table: str, prefix: Sequence[str] = ()) -> AssetKey:
    """Returns the key of a table's asset: the prefix, the schema and the table, in lower case. A table of another catalog than Spark's own
    has that before the schema."""
    parts = [part.lower() for part in parse_name(table)]
    if len(parts) == 3 and parts[0] == SESSION_CATALOG:
        parts = parts[1:]
    if len(parts) == 1:
        parts = [SCHEMA_DEFAULT, *parts]
    return AssetKey([*prefix, *parts])


def materializations(run: Run, prefix: Sequence[str] = ()) -> Iterator[AssetMaterialization]:
    """Yields an event for each table that the run has written, with its rows by change type and its versions."""
    for target in run.targets:
        yield AssetMaterialization(
            asset_key=_key(target.name, prefix),
            description=f"written from {', '.join(sorted({c.stream for c in target.consumptions}))}",
            metadata={
                "run": MetadataValue.text(run.name),
                "streams": MetadataValue.json(target.facts()["streams"]),
                **_number("rows_written", target.rows_written),
                **_number("target_version", target.version),
                **_changes(target.changes),
            },
        )


def observations(run: Run, prefix: Sequence[str] = ()) -> Iterator[AssetObservation]:
    """Yields an event for each stream that the run has moved: the interval that it took, and the rows by change type."""
    for consumption in run.consumptions:
        if consumption.is_consumed:
            yield AssetObservation(
                asset_key=_key(consumption.stream, prefix),
                description=f"consumed into {consumption.target or 'the result of a query'}",
                metadata={
                    "run": MetadataValue.text(run.name),
                    "consumption_id": MetadataValue.text(consumption.consumption_id),
                    **_number("from_version", consumption.from_version),
                    **_number("through_version", consumption.through_version),
                    **_changes(consumption.changes or {}),
                },
            )


def _key(name: str, prefix: Sequence[str]) -> AssetKey:
    """Returns the key of a name that the ledger has. One that cannot be read must not fail a step whose rows are committed."""
    try:
        return asset_key(name, prefix)
    except StreamqlError:
        return AssetKey([*prefix, name])


def _number(name: str, value: int | None) -> dict[str, Any]:
    return {} if value is None else {name: MetadataValue.int(value)}


def _changes(changes: Any) -> dict[str, Any]:
    return {f"changes/{change_type}": MetadataValue.int(number) for change_type, number in changes.items()}
