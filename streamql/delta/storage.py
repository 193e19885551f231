"""Tells whether the storage of a table's log is safe for several drivers. If it is not, two drivers can commit the same version, and one of
the commits is lost."""

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
"""The class of the extension's log store. Sessions with the extension use it on S3 unless their settings name another one."""

_LOCAL_STORE = constants("storage")["localLogStore"]
"""Its log store on the machine's own files, which lists logs faster than Delta's and writes them as Delta's does."""

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
"""The log stores that Delta uses by default, by scheme (Delta's `DelegatingLogStore.scala`)."""
_DEFAULT = "io.delta.storage.HDFSLogStore"

_SAFE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(S3_SCHEMES, frozenset({SAFE_STORE, "io.delta.storage.S3DynamoDBLogStore"})),
        **dict.fromkeys(_AZURE_SCHEMES, frozenset({"io.delta.storage.AzureLogStore"})),
        "gs": frozenset({"io.delta.storage.GCSLogStore"}),
        "hdfs": frozenset({"io.delta.storage.HDFSLogStore"}),
        "file": frozenset({_LOCAL_STORE, "io.delta.storage.HDFSLogStore"}),
    }
)
"""The log stores that let only one writer commit a version, by scheme. The storage has a conditional write or an atomic rename for that.
For `file` the extension's file system does it, if the application is one process."""

_FOR_ONE_DRIVER = frozenset({_DEFAULT, "io.delta.storage.LocalLogStore", *_DEFAULTS.values()})
"""Delta's own log stores. They are not safe for schemes other than their own."""

_warned: set[str] = set()
"""The ids of the sessions that were warned."""


@dataclass(frozen=True)
class Unsafe:
    """A log that several drivers must not write. `is_known`: streamql knows that its store is unsafe; False: streamql does not know the
    store."""

    path: str
    scheme: str
    store: str
    is_known: bool

    @property
    def what(self) -> str:
        """Returns what the problem is."""
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
    """Returns the log under a path if two drivers can lose a commit in it, or if its store is not known. None: it is safe. Pure.

    `setting`: returns the value of a key of the Spark context's configuration; None if it is not set. `is_local`: the application is one
    process.

    Delta finds the store of a log as follows (`LogStore.scala`, `DelegatingLogStore.scala`): by `spark.delta.logStore.class`, else by
    `spark.delta.logStore.<scheme>.impl`, else its default for the scheme. Each key may also lack `spark.`.
    """
    scheme = urlsplit(path).scheme.lower()
    if not scheme:  # not a Delta table: the path of one has a scheme
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
    """Returns the logs under the paths that several drivers must not write."""
    with_scheme = [p for p in dict.fromkeys(paths) if urlsplit(p).scheme]
    if not with_scheme:
        return []
    known = json.loads(scala(spark).storage.LogStores.settings(session_of(spark)))
    settings: dict[str, str] = known["settings"]
    found = (unsafe_store(path, settings.get, is_local=known["isLocal"]) for path in with_scheme)
    return [unsafe for unsafe in found if unsafe is not None]


def are_for_several_drivers(spark: SparkSession, paths: Iterable[str]) -> bool:
    """Returns whether several drivers can write the tables at all of the paths. If not, warns of the first unsafe one, once per session."""
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
    """A commit that the extension's log store did not write. `engine`: the name that its writer gave itself in the commit."""

    version: int
    time_ms: int
    engine: str


def unmarked_commits(spark: SparkSession, path: str, last: int) -> list[UnmarkedCommit]:
    """Returns which of the `last` newest commits of a table on S3 were written by another log store. Its writer may overwrite the commits
    of others, because it may not use conditional writes."""
    found = scala(spark).storage.LogStores.unmarked(session_of(spark), path, last)
    return [UnmarkedCommit(c["version"], c["time"], c["engine"]) for c in json.loads(found)]
