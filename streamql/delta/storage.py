"""Where a table's log is: whether its store gives a version to one writer, or two drivers can both commit it and one commit is lost."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from streamql.delta.jvm import scala, session_id, session_of
from streamql.shared import constants

log = logging.getLogger("streamql")

SAFE_STORE = constants("storage")["logStore"]
"""The class of the extension's log store, which sessions with the extension use on S3 unless they name another."""

S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
_AZURE_SCHEMES = frozenset({"abfs", "abfss", "adl", "wasb", "wasbs"})
_DELEGATING = "DelegatingLogStore"

_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(S3_SCHEMES, "io.delta.storage.S3SingleDriverLogStore"),
        **dict.fromkeys(_AZURE_SCHEMES, "io.delta.storage.AzureLogStore"),
        "gs": "io.delta.storage.GCSLogStore",
    }
)
"""Delta's own stores, by scheme (`DelegatingLogStore.scala`)."""
_DEFAULT = "io.delta.storage.HDFSLogStore"

_SAFE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(S3_SCHEMES, frozenset({SAFE_STORE, "io.delta.storage.S3DynamoDBLogStore"})),
        **dict.fromkeys(_AZURE_SCHEMES, frozenset({"io.delta.storage.AzureLogStore"})),
        "gs": frozenset({"io.delta.storage.GCSLogStore"}),
        "hdfs": frozenset({"io.delta.storage.HDFSLogStore"}),
        "file": frozenset({"io.delta.storage.HDFSLogStore"}),
    }
)
"""Stores that give a version to one writer, by scheme: by a condition or a rename of the storage's own. For `file` the extension's file
system does it, in an application of one process."""

_FOR_ONE_DRIVER = frozenset({_DEFAULT, "io.delta.storage.LocalLogStore", *_DEFAULTS.values()})
"""Delta's own stores, which are not safe for other schemes than theirs."""

_warned: set[str] = set()
"""The sessions that were warned."""


@dataclass(frozen=True)
class Unsafe:
    """A log that several drivers must not write. `is_known`: whether streamql knows that of its store, or does not know the store."""

    path: str
    scheme: str
    store: str
    is_known: bool

    @property
    def what(self) -> str:
        """Returns what can happen there."""
        if not self.is_known:
            return (
                f"streamql does not know whether several drivers can write {self.path}, whose log store is {self.store}"
            )
        if self.scheme == "file":
            return f"{self.path} is on a local file system of a cluster, where only one driver can commit at a time"
        return f"{self.path} has a log store that lets only one driver commit at a time ({self.store})"

    @property
    def remedy(self) -> str:
        """Returns what to do."""
        if self.scheme in S3_SCHEMES:
            return f"let one driver write, or start all with spark.delta.logStore.{self.scheme}.impl = {SAFE_STORE}"
        return "let one driver write, or put the table on HDFS, S3, or a store of Azure or Google"


def unsafe_store(path: str, setting: Callable[[str], str | None], *, is_local: bool = True) -> Unsafe | None:
    """Returns the log under a path, if two drivers can lose a commit there, or if nothing is known of its store; None: they cannot.
    `setting`: the value of a key of the Spark context's configuration; None if it is not set. `is_local`: the application is one process.
    Pure.

    Delta resolves a store so (`LogStore.scala`, `DelegatingLogStore.scala`): `spark.delta.logStore.class`, else
    `spark.delta.logStore.<scheme>.impl`, else its default of the scheme; each key also without `spark.`.
    """
    scheme = urlsplit(path).scheme.lower()
    if not scheme:  # no table of Delta's: a path of one has a scheme
        return None

    def either(key: str) -> str:
        return (setting(f"spark.{key}") or setting(key) or "").strip()

    store = either("delta.logStore.class")
    if not store or store.endswith(f".{_DELEGATING}"):
        store = either(f"delta.logStore.{scheme}.impl") or _DEFAULTS.get(scheme, _DEFAULT)
    if store in _SAFE.get(scheme, ()) and (is_local or scheme != "file"):
        return None
    is_known = scheme in _SAFE and (scheme == "file" or store in _FOR_ONE_DRIVER)
    return Unsafe(path, scheme, store, is_known)


def unsafe_stores(spark: SparkSession, paths: Iterable[str]) -> list[Unsafe]:
    """Returns the logs under some of the paths that several drivers must not write."""
    with_scheme = [p for p in dict.fromkeys(paths) if urlsplit(p).scheme]
    if not with_scheme:
        return []
    known = json.loads(scala(spark).storage.LogStores.settings(session_of(spark)))
    settings: dict[str, str] = known["settings"]
    found = (unsafe_store(path, settings.get, is_local=known["isLocal"]) for path in with_scheme)
    return [unsafe for unsafe in found if unsafe is not None]


def are_for_several_drivers(spark: SparkSession, paths: Iterable[str]) -> bool:
    """Returns whether several drivers can write the tables at all of the paths. If not, warns of the first one, once per session."""
    unsafe = unsafe_stores(spark, paths)
    if unsafe and (session := session_id(spark)) not in _warned:
        _warned.add(session)
        log.warning(
            "%s: of two drivers that commit at the same time, one commit may be lost, and a stream may lose changes or show them twice; %s",
            unsafe[0].what,
            unsafe[0].remedy,
        )
    return not unsafe


@dataclass(frozen=True)
class UnmarkedCommit:
    """A commit that was not written by the extension's store. `engine`: what its writer calls itself."""

    version: int
    time_ms: int
    engine: str


def unmarked_commits(spark: SparkSession, path: str, last: int) -> list[UnmarkedCommit]:
    """Returns those of the last commits of the table at a path on S3 that another log store has written: it may not see the condition."""
    found = scala(spark).storage.LogStores.unmarked(session_of(spark), path, last)
    return [UnmarkedCommit(c["version"], c["time"], c["engine"]) for c in json.loads(found)]
