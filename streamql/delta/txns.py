"""Delta's application transactions, as the consumption protocol uses them, and the event commits of the catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from streamql.delta.jvm import JavaObject, scala, session_of
from streamql.delta.log import CommitMissing, Json
from streamql.delta.table import DeltaTable, Snapshot

REPLAY_COMMITS_MAX = 200
"""More commits than this, and the state is asked before the commits are read."""

SET_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
"""Table property: transactions are forgotten after so long."""


@dataclass(frozen=True)
class Found:
    """A number that a log has for an application id, and the commit that brought it, where that was read."""

    number: int
    version: int | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)


def find_txn(
    spark: SparkSession, table: DeltaTable, latest: Snapshot, app_id: str, wanted: int, after: int
) -> Found | None:
    """Returns the commit of (app id, wanted), else what the log up to `latest` has last for the id; None: nothing since version `after`.

    Of few commits since then, they are read. Else the whole state is asked, which knows the last number only; where that is a later one,
    only the commits tell whether the wanted one came before it: they are read, however many, and where they are gone it is as if not.
    """

    def last() -> Found | None:
        number = scala(spark).consume.Txns.number(latest.handle, app_id)
        return None if number is None else Found(int(number))

    can_be_read = 0 <= after <= latest.version
    if not can_be_read or latest.version > after + REPLAY_COMMITS_MAX:
        known = last()
        if not can_be_read or known is None or known.number <= wanted:
            return known
    try:
        commits = table.commits(latest, after, latest.version, files=False)
    except CommitMissing:
        return last()
    found = [Found(c.transactions[app_id], c.version, c.metrics) for c in commits if app_id in c.transactions]
    exact = [f for f in found if f.number == wanted]
    return (exact or found)[-1] if found else None


def fence(spark: SparkSession, path: str, app_id: str, number: int, at_least: int) -> int | None:
    """Commits (app id, number) alone unless the log holds `at_least` or more by then: a compare-and-set. Answers the number that the
    log holds afterwards; None: another process committed, read again."""
    answer = scala(spark).consume.Txns.fence(session_of(spark), path, app_id, number, at_least)
    return None if answer is None else int(answer)


def set_properties(spark: SparkSession, table: DeltaTable, base: Snapshot, properties: Mapping[str, str]) -> int | None:
    """Sets table properties on top of a version. Returns the version that it made. None: another process changed the metadata since, or
    committed what conflicts: read again."""
    version = scala(spark).consume.Properties.set(base.handle, table.reader.log(), json.dumps(dict(properties)))
    return None if version is None else int(version)


@dataclass(frozen=True)
class EventState:
    """The catalog's table at a version, whole."""

    version: int
    table_id: str
    schema: Json
    configuration: Mapping[str, str]
    domains: Mapping[str, str]
    transactions: Mapping[str, int]
    handle: JavaObject

    @property
    def exists(self) -> bool:
        """False if there is no table."""
        return self.version >= 0


class EventLog:
    """The catalog's table: named pieces of state and rows of events, in one commit."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._log = scala(spark).consume.EventLog(session_of(spark), path)

    def update(self) -> JavaObject:
        """Returns the newest snapshot."""
        return self._log.update()

    def known(self) -> JavaObject:
        """Returns the snapshot that this process has: its own last commit, or what it read since. The log may have newer commits."""
        return self._log.known()

    def state(self, snapshot: JavaObject) -> EventState:
        """Returns all of a snapshot's state."""
        text = json.loads(self._log.state(snapshot))
        return EventState(
            text["version"],
            text.get("tableId", ""),
            text.get("schema", {}),
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
        """Makes one commit on top of `base`; None: a commit since then touched one of the same domains, nothing was written.

        Times in rows are milliseconds since 1970.
        """
        event = json.dumps({"domains": domains, "txns": transactions, "rows": rows})
        version = self._log.commit(base, event)
        return None if version is None else int(version)

    def rows(self, snapshot: JavaObject) -> list[tuple[str, list[Json]]]:
        """Returns the rows of each file of a snapshot, by the file's path. For tables of few rows of text and integers: the driver reads
        them, without a Spark job if the files are few. A NULL is a column that is absent."""
        return [(file["path"], file["rows"]) for file in json.loads(self._log.rows(snapshot))]

    def replace(self, base: JavaObject, paths: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bool:
        """Removes files and adds rows on top of `base`: a compare-and-set on the whole table. False: another process committed since;
        nothing was changed."""
        return self._log.replace(base, json.dumps(list(paths)), json.dumps(list(rows))) is not None

    def replace_columns(self, base: JavaObject, ddl: str) -> bool:
        """Gives the table other columns, on top of `base`; its rows stay. False: a commit came in between, nothing was changed."""
        return bool(self._log.replaceColumns(base, ddl))
