"""What can be set by Spark conf: `SET spark.streamql.… = …`, or in the session's configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamql.errors import StreamqlError
from streamql.shared import constants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Setting:
    """A key, its default (None: unset), and what it is for. `needs_unit`: a bare number is refused rather than taken for seconds. `values`:
    all that it may be; empty: any text."""

    key: str
    default: str | None
    meaning: str
    needs_unit: bool = False
    values: tuple[str, ...] = ()


CATALOG = Setting("spark.streamql.catalog", "streamql", "The schema of the catalog.")
CATALOG_LOCATION = Setting(
    "spark.streamql.catalogLocation", None, "The path of the catalog, for processes that do not share a metastore."
)
BUSY_TIMEOUT = Setting(
    "spark.streamql.busyTimeout",
    "90s",
    "How long a statement waits for another consumer of its stream. Then it raises STREAM_BUSY. If it is not longer than the lease, "
    "statements do not take over claims of other hosts: [crash recovery](operating.md#crash-recovery).",
)
LEASE = Setting(
    "spark.streamql.lease",
    "60s",
    "How long another process watches a claim without a heartbeat before it may resolve it. The watching process measures the time. "
    "The longer lease of both processes counts. The lease does not show whether data was committed.",
)
TRANSACTION_TIMEOUT = Setting(
    "spark.streamql.transactionTimeout",
    "1h",
    "How long a transaction may be open without a statement. Then it is given up, and other statements may take its streams.",
)
LEDGER_RETENTION = Setting(
    "spark.streamql.ledgerRetention", "90 days", "How long the ledger keeps entries.", needs_unit=True
)
AT_LEAST_ONCE = "at_least_once"
NON_DELTA_TARGETS = Setting(
    "spark.streamql.nonDeltaTargets",
    "refuse",
    f"`{AT_LEAST_ONCE}`: a statement may consume streams into tables that are not Delta tables. A crash can then deliver changes twice, "
    "and the ledger's `guarantee` shows it. `refuse`: such a statement raises UNSUPPORTED_TARGET.",
    values=("refuse", AT_LEAST_ONCE),
)
VACUUM_GUARD = Setting(
    "spark.streamql.vacuumGuard",
    "true",
    "Whether VACUUM is refused if it would delete files that a stream still needs. `false` switches the check off.",
    values=("true", "false"),
)
CATALOG_GUARD = Setting(
    constants("settings")["catalogGuard"],
    "true",
    "Whether statements that write, alter or drop the table or the views of the catalog are refused. `false` switches the check off, to "
    "[repair or remove a catalog](troubleshooting.md#catalog_unreadable).",
    values=("true", "false"),
)
MAX_RETENTION_EXTENSION = Setting(
    "spark.streamql.maxRetentionExtension",
    "14 days",
    "How long `streamql doctor --fix` makes a source keep its history, at most, while a stream lags. `0 days`: never.",
    needs_unit=True,
)

PYTHON = Setting(
    constants("settings")["python"],
    None,
    "The Python of the sidecar. `streamql conf` prints it, and `configure()` sets it. If it is not set: "
    "`PYSPARK_DRIVER_PYTHON`, `PYSPARK_PYTHON`, `python3`.",
)

CONNECTORS = Setting(
    "spark.streamql.connectors",
    None,
    "Names of optional connectors, separated by commas: `kafka`, `s3`. Spark loads their jars when it starts. The option `--with` sets it.",
)

KAFKA_TIMEOUT = Setting(
    "spark.streamql.kafkaTimeout",
    "10s",
    "How long a statement waits for the brokers of a storage connection. Then it raises KAFKA_UNREACHABLE.",
)

INTERNAL = "spark.streamql.internal"
"""What the keys begin with that are not for users: streamql's clients and servers speak by them."""

WANTS_EFFECTS = f"{INTERNAL}.wantsEffects"
EFFECTS = f"{INTERNAL}.effects"
"""A client of a server asks by the first one; the server leaves by the second what the client's statements consumed."""

ALL = (
    CATALOG,
    CATALOG_LOCATION,
    BUSY_TIMEOUT,
    LEASE,
    TRANSACTION_TIMEOUT,
    NON_DELTA_TARGETS,
    LEDGER_RETENTION,
    VACUUM_GUARD,
    CATALOG_GUARD,
    MAX_RETENTION_EXTENSION,
    PYTHON,
    CONNECTORS,
    KAFKA_TIMEOUT,
)
"""In the order of the documentation."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(?:(ms|milliseconds?)|(s|sec|seconds?)|(m|min|minutes?)|(h|hours?)|(d|days?)|(w|weeks?))?\s*",
    re.IGNORECASE,
)


def text(spark: SparkSession, setting: Setting) -> str:
    """Returns the value that is in force; empty if there is none."""
    return spark.conf.get(setting.key, setting.default) or setting.default or ""


def choice(spark: SparkSession, setting: Setting) -> str:
    """Returns the value of a setting that has `values`, in lower case. Raises INVALID_ARGUMENT for any other value."""
    given = text(spark, setting)
    found = given.strip().lower()
    if found not in setting.values:
        raise _invalid(setting, f"is {given!r}, and must be {' or '.join(setting.values)}")
    return found


def seconds(spark: SparkSession, setting: Setting) -> float:
    """Returns a duration such as 500ms, 90s, 2min, 14 days. Raises INVALID_ARGUMENT."""
    given = text(spark, setting)
    found = duration(given, needs_unit=setting.needs_unit)
    if found is None:
        raise _invalid(setting, f"is {given!r}, which is not a duration")
    return found


def _invalid(setting: Setting, why: str) -> StreamqlError:
    return StreamqlError("INVALID_ARGUMENT", f"{setting.key} {why}", hint=f"SET {setting.key} = {setting.default}")


def duration(given: str, *, needs_unit: bool) -> float | None:
    """500ms, 90s, 2min, 14 days in seconds; None for anything else, where a unit is needed a bare number too."""
    m = _DURATION.fullmatch(given)
    unit = None if m is None else next((u for u, found in zip(_UNITS, m.groups()[1:], strict=True) if found), None)
    if m is None or (unit is None and needs_unit):
        return None
    return float(m.group(1)) * _UNITS[unit or "s"]
