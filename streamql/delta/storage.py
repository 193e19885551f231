"""Object stores on which two drivers can both commit one version of a Delta table, and one commit is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from streamql.delta.jvm import session_id, session_of
from streamql.shared import constants

log = logging.getLogger("streamql")

S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
SAFE_STORE = constants("storage")["logStore"]
"""The class of the extension's log store, which sessions with the extension use unless they name another."""

_DELEGATING = "DelegatingLogStore"
_DEFAULT = "io.delta.storage.S3SingleDriverLogStore"
_SINGLE_DRIVER = frozenset(
    {
        "S3SingleDriverLogStore",
        "HDFSLogStore",
        "AzureLogStore",
        "GCSLogStore",
        "LocalLogStore",
        "HadoopFileSystemLogStore",
    }
)
"""Delta's own stores that rely on the file system, or on one driver's memory, to give a name to one writer. S3's file systems do not."""

_warned: set[str] = set()
"""The sessions that were warned."""


def unsafe_store(path: str, setting: Callable[[str], str | None]) -> str | None:
    """The class of Delta's log store under a path, if two drivers can lose a commit there. None: they cannot, or the store is not Delta's
    own, so that nothing is known. `setting`: the value of a key of the Spark context's configuration; None if it is not set. Pure.

    Delta resolves a store so (`LogStore.scala`, `DelegatingLogStore.scala`): `spark.delta.logStore.class`, else
    `spark.delta.logStore.<scheme>.impl`, else its default of the scheme; each key also without `spark.`.
    """
    scheme = urlsplit(path).scheme.lower()
    if scheme not in S3_SCHEMES:
        return None

    def either(key: str) -> str:
        return setting(f"spark.{key}") or setting(key) or ""

    store = either("delta.logStore.class")
    if not store or _simple(store) == _DELEGATING:
        store = either(f"delta.logStore.{scheme}.impl") or _DEFAULT
    return store if _simple(store) in _SINGLE_DRIVER else None


def _simple(name: str) -> str:
    return name.strip().rpartition(".")[2]


def warn_of_unsafe_store(spark: SparkSession, paths: Iterable[str]) -> None:
    """Warns once per session that several drivers can lose commits of the tables at some of the paths."""
    on_s3 = [p for p in paths if urlsplit(p).scheme.lower() in S3_SCHEMES]
    if not on_s3 or (session := session_id(spark)) in _warned:
        return
    conf = session_of(spark).sparkContext().conf()

    def setting(key: str) -> str | None:
        value = conf.get(key, "")
        return str(value) if value else None

    for path in on_s3:
        store = unsafe_store(path, setting)
        if store is not None:
            _warned.add(session)
            key = f"spark.delta.logStore.{urlsplit(path).scheme.lower()}.impl"
            log.warning(
                "%s is on S3, and the log store that this session names (%s) is safe for one driver only: of two drivers that commit at "
                "the same time, one commit may be lost, and a stream may lose changes or show them twice. Let one driver write, or start "
                "all without that setting, or with %s = %s",
                path,
                store,
                key,
                SAFE_STORE,
            )
            return
