"""Delta's application transactions, as the consumption protocol uses them, and the event commits of the catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from streamql.delta.jvm import JavaObject, scala, session_of


@dataclass(frozen=True)
class TargetTxn:
    """What the log at a path says of an application id: `number` None: nothing. `retention`: such entries expire there."""

    exists: bool
    version: int
    table_id: str
    number: int | None
    retention: str | None


def read_txn(spark: SparkSession, path: str, app_id: str) -> TargetTxn:
    """Reads the target's log, as it is now."""
    answer = json.loads(scala(spark).Txns.read(session_of(spark), path, app_id))
    return TargetTxn(
        answer["exists"], answer["version"], answer.get("tableId", ""), answer.get("txn"), answer.get("retention")
    )


def fence(spark: SparkSession, path: str, app_id: str, number: int, at_least: int) -> int | None:
    """Commits (app id, number) alone unless the log holds `at_least` or more by then: a compare-and-set. Answers the number that the
    log holds afterwards; None: somebody else committed, read again."""
    answer = scala(spark).Txns.fence(session_of(spark), path, app_id, number, at_least)
    return None if answer is None else int(answer)


@dataclass(frozen=True)
class EventState:
    """The catalog's table at a version, whole."""

    version: int
    table_id: str
    configuration: Mapping[str, str]
    domains: Mapping[str, str]
    transactions: Mapping[str, int]
    handle: JavaObject

    @property
    def exists(self) -> bool:
        """False where there is no table."""
        return self.version >= 0


class EventLog:
    """The catalog's table: named pieces of state and rows of events, in one commit."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._log = scala(spark).EventLog(session_of(spark), path)

    def update(self) -> JavaObject:
        """The newest snapshot."""
        return self._log.update()

    def state(self, snapshot: JavaObject) -> EventState:
        """All of a snapshot's state."""
        text = json.loads(self._log.state(snapshot))
        return EventState(
            text["version"],
            text.get("tableId", ""),
            text.get("configuration", {}),
            text.get("domains", {}),
            text.get("txns", {}),
            snapshot,
        )

    def commit(
        self,
        base: JavaObject,
        domains: Mapping[str, str | None],
        transactions: Mapping[str, int],
        rows: Sequence[Mapping[str, Any]],
    ) -> int | None:
        """One commit on top of `base`; None: a commit since then touched one of the same domains, nothing was written.

        Times in rows are milliseconds since 1970.
        """
        event = json.dumps({"domains": domains, "txns": transactions, "rows": rows})
        version = self._log.commit(base, event)
        return None if version is None else int(version)
