"""For Dagster: a resource that runs scripts, events of the tables that a script wrote, and a sensor that asks once for each interval."""

from __future__ import annotations

try:
    import dagster  # noqa: F401
except ImportError as e:
    raise ImportError(
        "streamql.integrations.dagster needs Dagster: pip install 'streamql[dagster]'", name="dagster"
    ) from e

from streamql.integrations.dagster.events import asset_key, materializations, observations
from streamql.integrations.dagster.resource import StreamqlResource
from streamql.integrations.dagster.sensor import streamql_sensor

__all__ = ["StreamqlResource", "asset_key", "materializations", "observations", "streamql_sensor"]
