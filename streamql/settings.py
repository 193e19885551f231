"""What can be set by Spark conf: `SET spark.streamql.… = …`, or in the session's configuration.

The keys, their defaults and what they take are in `streamql/shared/settings.json`, from which the extension makes them settings of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamql.durations import ALLOWED, read_seconds
from streamql.errors import StreamqlError, of_catalogue
from streamql.misspelt import nearest
from streamql.shared import constants, text_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Setting:
    """A key, its default (None: unset), and what it is for. `allowed`: what it takes, for messages; empty: any text. `values`: all that it
    may be; empty: anything. `needs_unit`: a bare number is refused rather than taken for seconds. `is_static`: it is set when Spark starts,
    and no session changes it."""

    key: str
    default: str | None
    meaning: str
    allowed: str = ""
    values: tuple[str, ...] = ()
    is_duration: bool = False
    needs_unit: bool = False
    is_static: bool = False

    def takes(self, given: str) -> bool:
        """Returns whether the setting may have a value."""
        if self.values:
            return given.strip().lower() in self.values
        return not self.is_duration or read_seconds(given, needs_unit=self.needs_unit) is not None


def _setting(entry: Mapping[str, Any]) -> Setting:
    return Setting(
        entry["key"],
        entry["default"],
        entry["meaning"],
        entry.get("allowed", ALLOWED if entry.get("isDuration") else ""),
        tuple(entry.get("values", ())),
        entry.get("isDuration", False),
        entry.get("needsUnit", False),
        entry.get("isStatic", False),
    )


_FILE = json.loads(text_of("settings.json"))

ALL = tuple(_setting(entry) for entry in _FILE["settings"])
"""In the order of the documentation."""

_BY_NAME = {setting.key.rpartition(".")[2]: setting for setting in ALL}

CATALOG = _BY_NAME["catalog"]
CATALOG_LOCATION = _BY_NAME["catalogLocation"]
BUSY_TIMEOUT = _BY_NAME["busyTimeout"]
LEASE = _BY_NAME["lease"]
TRANSACTION_TIMEOUT = _BY_NAME["transactionTimeout"]
LEDGER_RETENTION = _BY_NAME["ledgerRetention"]
NON_DELTA_TARGETS = _BY_NAME["nonDeltaTargets"]
AT_LEAST_ONCE = "at_least_once"
"""The value of NON_DELTA_TARGETS that allows them."""
VACUUM_GUARD = _BY_NAME["vacuumGuard"]
CATALOG_GUARD = _BY_NAME["catalogGuard"]
MAX_RETENTION_EXTENSION = _BY_NAME["maxRetentionExtension"]
AUTO_CDC_RETENTION = _BY_NAME["autoCdcRetention"]
PYTHON = _BY_NAME["python"]
CONNECTORS = _BY_NAME["connectors"]
KAFKA_TIMEOUT = _BY_NAME["kafkaTimeout"]

PREFIX = constants("settings")["prefix"]
INTERNAL = constants("settings")["internal"]
"""What the keys begin with that are not for users: streamql's clients and servers speak by them."""

WANTS_EFFECTS = f"{INTERNAL}wantsEffects"
EFFECTS = f"{INTERNAL}effects"
"""A client of a server asks by the first one; the server leaves by the second what the client's statements consumed."""

RUN = f"{INTERNAL}run"
"""The name of the run that a session belongs to, such as that of a task of an orchestrator: the ledger has it for each consumption."""


def check(conf: Mapping[str, str]) -> None:
    """Checks what a session is given, before Spark starts, as the extension does in it. Raises INVALID_ARGUMENT for an unknown key
    that begins with `spark.streamql.`, and for a value that its setting does not take."""
    by_key = {setting.key: setting for setting in ALL}
    for key, value in conf.items():
        setting = by_key.get(key)
        if setting is not None and not setting.takes(value):
            raise _invalid(setting, value)
        if setting is None and key.startswith(PREFIX) and not key.startswith(INTERNAL):
            raise _unknown(key)


def text(spark: SparkSession, setting: Setting) -> str:
    """Returns the value that is in force; empty if there is none."""
    return spark.conf.get(setting.key, setting.default) or setting.default or ""


def choice(spark: SparkSession, setting: Setting) -> str:
    """Returns the value of a setting that has `values`, in lower case. Raises INVALID_ARGUMENT for any other value."""
    given = text(spark, setting)
    if not setting.takes(given):
        raise _invalid(setting, given)
    return given.strip().lower()


def seconds(spark: SparkSession, setting: Setting) -> float:
    """Returns the value of a setting that is a duration. Raises INVALID_ARGUMENT."""
    given = text(spark, setting)
    found = read_seconds(given, needs_unit=setting.needs_unit)
    if found is None:
        raise _invalid(setting, given)
    return found


def _invalid(setting: Setting, given: str) -> StreamqlError:
    facts = {"setting": setting.key, "value": given, "allowed": setting.allowed, "default": setting.default}
    return of_catalogue("INVALID_ARGUMENT", "SETTING_VALUE", facts)


def _unknown(key: str) -> StreamqlError:
    meant = nearest(key.removeprefix(PREFIX), _BY_NAME)
    if meant is not None:
        return of_catalogue("INVALID_ARGUMENT", "SETTING_MISSPELT", {"setting": key, "nearest": PREFIX + meant})
    known = " · ".join(setting.key for setting in ALL)
    return of_catalogue("INVALID_ARGUMENT", "SETTING_UNKNOWN", {"setting": key, "known": known})
