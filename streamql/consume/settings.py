"""What consumption can be told by Spark conf."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from streamql.errors import StreamqlError

BUSY_TIMEOUT = ("spark.streamql.busyTimeout", "90s")
"""How long a statement waits for another one that consumes the same stream, before STREAM_BUSY."""

LEASE = ("spark.streamql.lease", "60s")
"""After how long without a heartbeat, on the observer's own clock, a claim may be decided by others. It decides who bothers, never
whether data was committed."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(spark: SparkSession, setting: tuple[str, str]) -> float:
    """A duration such as 500ms, 90s, 2min; a bare number counts seconds. Raises INVALID_ARGUMENT."""
    key, default = setting
    text = spark.conf.get(key, default) or default
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?\s*", text)
    if m is None:
        raise StreamqlError(
            "INVALID_ARGUMENT", f"{key} is {text!r}, which is no duration", hint=f"SET {key} = {default}"
        )
    return float(m.group(1)) * _UNITS[m.group(2) or "s"]
