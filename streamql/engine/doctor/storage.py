"""The check of storage: finds tables whose logs two drivers cannot write safely, and writers without conditional writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from streamql.catalog.rows import targets_of_consumptions
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import sentence
from streamql.delta.storage import S3_SCHEMES, SAFE_STORE, Unsafe, unmarked_commits, unsafe_stores
from streamql.engine.doctor.check import CATALOG, Check, Finding, Problem
from streamql.model import Interval
from streamql.times import DAY_MS, now_ms

COMMITS_LOOKED_AT = 20
"""How many of the newest commits of each table on S3 are checked. Each takes one request."""

RECENT_MS = 7 * DAY_MS
"""A writer that has committed less than so long ago is assumed to be still active."""


class Storage(Check[None]):
    """Finds sources and targets of streams, and catalogs, in whose logs a commit can be lost. Has no fix."""

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:
        """See Check."""
        subjects = _subjects(spark, states)
        unsafe = {u.path: u for u in unsafe_stores(spark, subjects)}
        for path, subject in subjects.items():
            if path in unsafe:
                yield Problem(_finding(subject, unsafe[path]))
            elif path.partition(":")[0].lower() in S3_SCHEMES:
                found = _of_other_writers(spark, path, subject)
                if found is not None:
                    yield Problem(found)


def _subjects(spark: SparkSession, states: Sequence[StreamState]) -> dict[str, str]:
    """Returns {path: name} of the catalog, and of all sources and targets of streams."""
    catalog = catalog_of(spark)
    found = {catalog.path: CATALOG} if catalog.path else {}
    for state in states:
        at = Interval(state.offset.position, state.offset.position)
        found |= {table.path: str(table.name) for table, _ in state.stream.source.holds(at)}
        if state.claim is not None:
            found |= {s.path: s.target for s in state.claim.statements if s.path}
    try:
        events = catalog.events(spark)
        targets = {} if events is None else targets_of_consumptions(events)
    except Exception:  # the check of the rows reports it
        targets = {}
    return {**targets, **found}


def _finding(subject: str, unsafe: Unsafe) -> Finding:
    what = f"{unsafe.what}: of two drivers that commit at the same time, one commit may be lost"
    return Finding(subject, "warning", "UNSAFE_STORAGE", what, unsafe.remedy)


def _of_other_writers(spark: SparkSession, path: str, subject: str) -> Finding | None:
    """Returns a finding if another log store has written the table lately; None: none has."""
    try:
        commits = unmarked_commits(spark, path, COMMITS_LOOKED_AT)
    except Exception as e:  # the table was dropped, or cannot be read
        what = f"the log of {path} cannot be read: {sentence(e)}"
        return Finding(subject, "warning", "UNSAFE_STORAGE", what, "check whether the table is there, and may be read")
    recent = [c for c in commits if now_ms() - c.time_ms < RECENT_MS]
    if not recent:
        return None
    newest = recent[-1]
    what = (
        f"version {newest.version} of {path} was committed by a writer without conditional writes ({newest.engine or 'unknown'}): it can "
        "overwrite a commit of another driver"
    )
    scheme = path.partition(":")[0].lower()
    remedy = (
        f"give that writer streamql's extension; or its jar, with spark.delta.logStore.{scheme}.impl = {SAFE_STORE}"
    )
    return Finding(subject, "warning", "UNSAFE_STORAGE", what, remedy)
