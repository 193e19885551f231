"""Delta's application transactions (`txn` actions), which the consumption protocol uses, and the commits of the catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import JavaObject, frame, scala, session_of
from streamql.delta.log import CommitMissing, Json
from streamql.delta.table import DeltaTable, Snapshot

REPLAY_COMMITS_MAX = 200
"""If there are more commits than this, the table's state is asked before the commits are read."""

SET_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
"""The table property that says after how long Delta forgets application transactions."""


@dataclass(frozen=True)
class Found:
    """A number that a log has for an application id. `version` and `metrics`: of the commit that has it; None and empty: that was not
    read."""

    number: int
    version: int | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)


def find_txn(
    spark: SparkSession, table: DeltaTable, latest: Snapshot, app_id: str, wanted: int, after: int
) -> Found | None:
    """Looks for the commit with the number `wanted` for an application id, in the log up to `latest`. If there is none, returns the last
    number of the id. None: the id has no number since version `after`.

    If there are few commits since `after`, they are read. Otherwise the table's state is asked, which has only the last number. If that is
    higher than the wanted one, only the commits show whether the wanted one came before it. Then they are read, however many they are. If
    they are no longer in the log, the result is that of the state.
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
    """Commits only the transaction (app id, number), unless the log has a number of at least `at_least` for the id. It is a
    compare-and-set. Returns the number that the log has afterwards. None: another process committed at the same time; read the log
    again."""
    answer = scala(spark).consume.Txns.fence(session_of(spark), path, app_id, number, at_least)
    return None if answer is None else int(answer)


def set_properties(spark: SparkSession, table: DeltaTable, base: Snapshot, properties: Mapping[str, str]) -> int | None:
    """Sets table properties by a commit that is based on a version. Returns the new version. None: another process changed the metadata
    since, or made another commit that conflicts; read the table again."""
    version = scala(spark).consume.Properties.set(base.handle, table.reader.log(), json.dumps(dict(properties)))
    return None if version is None else int(version)


@dataclass(frozen=True)
class EventState:
    """The whole state of the catalog's table at a version."""

    version: int
    table_id: str
    schema: Json
    configuration: Mapping[str, str]
    domains: Mapping[str, str]
    transactions: Mapping[str, int]
    handle: JavaObject

    @property
    def exists(self) -> bool:
        """Returns False if there is no table."""
        return self.version >= 0


class EventLog:
    """The log of the catalog's table. One commit has domain metadata, transactions and rows of events."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._log = scala(spark).consume.EventLog(session_of(spark), path)

    def update(self) -> JavaObject:
        """Reads the newest snapshot from the log."""
        return self._log.update()

    def known(self) -> JavaObject:
        """Returns the newest snapshot that this process knows, without reading the log: that of its own last commit, or a later one that it
        read."""
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
        """Makes one commit that is based on the snapshot `base`. Returns its version. None: another commit since then changed one of the
        same domains, and nothing was written. Times in rows are milliseconds since 1970.
        """
        event = json.dumps({"domains": domains, "txns": transactions, "rows": rows})
        version = self._log.commit(base, event)
        return None if version is None else int(version)

    def frame(self, snapshot: JavaObject) -> DataFrame:
        """Returns the rows of a snapshot. Lazy. No job lists its files, unless they are many."""
        return frame(self._spark, self._log.frame(snapshot))

    def rows(self, snapshot: JavaObject) -> list[tuple[str, list[Json]]]:
        """Returns the rows of each file of a snapshot, as (path of the file, rows). It is meant for small tables of text and integers: the
        driver reads them, without a Spark job if there are few files. A column that is NULL is absent from its row."""
        return [(file["path"], file["rows"]) for file in json.loads(self._log.rows(snapshot))]

    def replace(self, base: JavaObject, paths: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bool:
        """Removes files and adds rows by one commit, which is a compare-and-set on the whole table. Returns False, and changes nothing, if
        another process has committed since `base`."""
        return self._log.replace(base, json.dumps(list(paths)), json.dumps(list(rows))) is not None

    def replace_columns(self, base: JavaObject, ddl: str) -> bool:
        """Gives the table other columns, and keeps its rows. Returns False, and changes nothing, if another process has committed since
        `base`."""
        return bool(self._log.replaceColumns(base, ddl))
