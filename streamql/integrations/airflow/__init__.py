"""For Apache Airflow 3. `StreamqlSensor` waits for a stream. `StreamqlOperator` runs a script, and reports the tables that it wrote as
assets."""

from __future__ import annotations

try:
    import airflow.sdk  # noqa: F401
except ImportError as e:
    raise ImportError(
        "streamql.integrations.airflow needs Apache Airflow 3: pip install 'streamql[airflow]'", name="airflow"
    ) from e

from streamql.integrations.airflow.assets import table_asset
from streamql.integrations.airflow.operator import StreamqlOperator
from streamql.integrations.airflow.sensor import StreamqlSensor
from streamql.integrations.airflow.trigger import StreamqlTrigger

__all__ = ["StreamqlOperator", "StreamqlSensor", "StreamqlTrigger", "table_asset"]
