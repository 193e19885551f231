"""The catalog of streams: reads its state, and writes events, each a compare-and-set on the streams it concerns.

State lies in Delta domain metadata, one domain a stream and one a name; the same commit adds the event's row for users and a
SetTransaction (stream uuid, event number), which RESTORE of the table does not take back. Delta refuses a commit when another one
touched the same domain since the snapshot it is based on: that is the compare-and-set, and streams do not disturb one another.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streamql import settings
from streamql.catalog import creation, errors, tables, upkeep
from streamql.catalog.contents import Contents
from streamql.catalog.definitions import Entry, uuid_of
from streamql.catalog.states import StreamState
from streamql.delta.jvm import JavaObject, sentence
from streamql.delta.log import CommitMissing
from streamql.delta.names import schema_location, view_text
from streamql.delta.neutral import neutral, neutral_clone
from streamql.delta.table import DeltaTable
from streamql.delta.txns import EventLog, EventState
from streamql.errors import StreamqlError
from streamql.names import Name, quote
from streamql.sources.definitions import Definition, DefinitionType

REPLAY_COMMITS_MAX = 1000
"""More new commits than this, and the state is read whole."""
CREATION_SECONDS_MAX = 2.0
"""How long a process that was not the first to create the catalog waits for it."""
RECENT_SECONDS = 2.0
"""How long after it was read or written the catalog need not be read for a commit, which Delta refuses if others changed the same entry."""

Event = Mapping[str, Any]

log = logging.getLogger("streamql")


class Catalog:
    """The streams that a session sees. One object for all sessions of a JVM that use the same place; safe for threads."""

    def __init__(self, schema: str, path: str | None) -> None:
        self._schema = schema
        self._configured_path = path
        self._path: str | None = None
        self._lock = threading.RLock()
        self._version = -1
        self._table_id = ""
        self._base: JavaObject = None
        self._known_at = -math.inf
        self._contents = Contents()
        self._is_shown = False

    @property
    def table_id(self) -> str:
        """Returns the id of the table that the catalog was last seen in."""
        return self._table_id

    @property
    def path(self) -> str:
        """Returns where the table of events was last seen; empty: it was not looked for yet, or is not there."""
        return self._path or ""

    # -- reading

    def refresh(self, spark: SparkSession) -> None:
        """Reads the log's events since the last read. Raises CATALOG_UNREADABLE, and guesses nothing."""
        with self._lock:
            path = self._path
            try:
                path = self._locate(spark)
                if path is not None:
                    asked = time.monotonic()
                    self._follow(spark, path)
                    self._known_at = asked
            except (Py4JError, PySparkException) as e:  # Delta's, the metastore's and the storage's own
                raise errors.log_unreadable(self._schema, path, sentence(e)) from e

    def _follow(self, spark: SparkSession, path: str) -> None:
        log = EventLog(spark, path)
        snapshot = log.update()
        version = int(snapshot.version())
        was_there = self._base is not None
        if was_there and version < self._version and snapshot.metadata().id() == self._table_id:
            raise errors.put_back(self._schema, path, self._version, version)
        if was_there and (version == self._version or self._replay(spark, path, snapshot, version)):
            return
        self._load(log, snapshot)
        if not self._is_loaded():
            self._path = None  # it is looked for anew
            if was_there or (self._has_been(spark) and not DeltaTable(spark, path).latest().exists):
                raise errors.missing(self._schema, path)

    def _follow_own(
        self,
        spark: SparkSession,
        version: int,
        snapshot: JavaObject,
        domains: Mapping[str, str | None],
        numbers: Mapping[str, int],
    ) -> None:
        """Follows a commit of this process without reading it, unless commits of others are before or after it."""
        if version != self._version + 1 or int(snapshot.version()) != version:
            self.refresh(spark)
            return
        self._contents.numbers.update(numbers)
        self._contents.apply(domains)
        self._version, self._base, self._known_at = version, snapshot, time.monotonic()

    def find(self, spark: SparkSession, name: Name) -> StreamState | None:
        """Returns the stream of a name, as of now. Raises CATALOG_UNREADABLE, where its entry is damaged for one."""
        with self._lock:
            self.refresh(spark)
            return self._contents.find(name)

    def by_uuid(self, spark: SparkSession, uuid: str) -> StreamState | None:
        """Returns a stream by its id, as of now."""
        with self._lock:
            self.refresh(spark)
            return self._contents.get(uuid)

    def last_read(self, spark: SparkSession, uuid: str) -> StreamState | None:
        """Returns a stream by its id, as this process last read it or wrote it. The catalog is read only if it has no such stream.

        For changes: `commit` refuses one that is based on a state that is no longer there.
        """
        with self._lock:
            return self._contents.get(uuid) or self.by_uuid(spark, uuid)

    def definition(self, spark: SparkSession, name: Name, type_: DefinitionType | None = None) -> Definition | None:
        """Returns the definition of a name, as of now: of any type, or of one. Raises CATALOG_UNREADABLE, where its entry is damaged for
        one."""
        with self._lock:
            self.refresh(spark)
            found = self._contents.find_definition(name)
            return found if found is not None and type_ in (None, found.type) else None

    def definitions(self, spark: SparkSession, type_: DefinitionType | None = None) -> list[Definition]:
        """Returns every definition, or those of a type, whose entry can be read, by name."""
        with self._lock:
            self.refresh(spark)
            return sorted(
                (d for d in self._contents.definitions.values() if type_ in (None, d.type)),
                key=lambda d: (d.name.key, d.uuid),
            )

    def all(self, spark: SparkSession) -> list[StreamState]:
        """Returns every stream whose entry can be read, by name; not those of refreshes."""
        with self._lock:
            self.refresh(spark)
            return self._contents.shown()

    def unreadable(self) -> list[StreamqlError]:
        """Returns why entries could not be read, at the last read."""
        with self._lock:
            return self._contents.unreadable()

    def contradictions(self) -> list[str]:
        """Returns what in the catalog as it was last read does not fit together; nothing, unless others than streamql wrote it."""
        with self._lock:
            return self._contents.contradictions()

    def was_restored(self, state: StreamState) -> bool:
        """Returns whether the table of events was taken back behind an event of this stream: its offset is not to be trusted then."""
        with self._lock:
            now = self._contents.streams.get(state.stream.uuid)
            return now is not None and self._contents.numbers.get(now.stream.uuid, 0) > now.sequence

    def number_of(self, state: StreamState) -> int:
        """Returns the number of the stream's last event, even if the table of events was restored to an earlier version."""
        return max(self._contents.numbers.get(state.stream.uuid, 0), state.sequence)

    def outcome_of(self, spark: SparkSession, consumption_id: str) -> str | None:
        """Returns what the ledger says became of a consumption: CONSUMED if any of its rows says so; None: nothing."""
        rows = self.ledger(spark)
        if rows is None:
            return None
        said = {
            str(r["outcome"]) for r in rows.where(rows.consumption_id == consumption_id).select("outcome").collect()
        }
        return "CONSUMED" if "CONSUMED" in said else next(iter(said), None)

    def ledger(self, spark: SparkSession) -> DataFrame | None:
        """Returns the rows of resolved consumptions, as the view `consumptions` shows them. None: there is no catalog yet."""
        rows = self.events(spark)
        return None if rows is None else rows.where(tables.IS_CONSUMPTION)

    def events(self, spark: SparkSession) -> DataFrame | None:
        """Returns all rows. None: there is no catalog yet."""
        self.refresh(spark)
        return neutral(spark).read.format("delta").load(self._path) if self._is_loaded() and self._path else None

    # -- writing

    def commit(
        self,
        spark: SparkSession,
        before: Sequence[Entry],
        after: Sequence[Entry | None],
        events: Sequence[Event],
    ) -> bool:
        """Makes one event commit: each entry goes from its state before to its state after. None: it is dropped; only in `after`: new.

        False: an entry or name was changed by another process since `before` was read; nothing is written.
        """
        self._show_here(spark)
        if not self._is_loaded() or time.monotonic() - self._known_at > RECENT_SECONDS:
            self._create(spark)  # without the lock: its SQL asks this catalog from other threads
        with self._lock:
            if any(self._contents.entry(uuid_of(e)) != e for e in before) or not self._is_loaded():
                return False
            domains, numbers = self._contents.change(before, after)
            if domains is None:
                return False
            base = self._version
            events_log = EventLog(spark, self._path or "")
            version = events_log.commit(self._base, domains, numbers, events)
            if version is None:
                self.refresh(spark)
                return self._is_written(spark, base, domains)
            self._follow_own(spark, version, events_log.known(), domains, numbers)
            if upkeep.is_due(version):
                upkeep.maintain_later(lambda: neutral_clone(spark), self._table)
            return True

    def discard(self, spark: SparkSession, name: Name) -> bool:
        """Takes away a name that stands for a damaged entry, with that, or for another stream; no other name."""
        with self._lock:
            self.refresh(spark)
            domains = self._contents.without(name)
            if not domains:
                return False
            EventLog(spark, self._path or "").commit(self._base, domains, {}, [])
            return True

    @property
    def _table(self) -> str:
        return f"delta.{quote(self._path or '')}"

    def maintain(self, spark: SparkSession) -> None:
        """Does one round of upkeep, now; nothing if there is no catalog."""
        self.refresh(spark)
        if self._is_loaded():
            upkeep.maintain(neutral_clone(spark), self._table)

    def _is_written(self, spark: SparkSession, base: int, domains: Mapping[str, str | None]) -> bool:
        """Returns whether a refused commit is in the log all the same, after version `base`: storage may take one and not say so, and
        Delta's retry then meets it, and takes it for another process's. Others may have gone on from it since, so that the state of now
        does not tell; of two equal ones, which hold the same numbers and ids, it makes no difference whose it is."""
        table = DeltaTable(spark, self._path or "")
        try:
            return any(
                domains.items() <= c.domains.items()
                for c in table.commits(table.latest(), base, self._version, files=False)
            )
        except CommitMissing:  # after more than a day in one commit
            return False

    # -- where it lies

    def _locate(self, spark: SparkSession) -> str | None:
        if self._path is None:
            self._path = self._configured_path
        if self._path is None:
            location = schema_location(spark, self._schema)
            self._path = None if location is None else f"{location}/{tables.EVENTS}"
        return self._path

    def _has_been(self, spark: SparkSession) -> bool:
        """Returns whether the session's metastore has this catalog's ledger: what is not there now, was."""
        ledger = view_text(spark, self._schema, tables.CONSUMPTIONS)
        return ledger is not None and tables.events_name(self._schema, self._configured_path) in ledger

    def _create(self, spark: SparkSession) -> None:
        self.refresh(spark)
        if self._is_loaded():
            return
        try:
            self._repair(spark)
            creation.create(spark, self._schema, self._configured_path)
        except Exception:  # two at once: the metastore, or Delta, refuses one, which finds what the other makes
            if not self._appears(spark):
                raise
        if not self._appears(spark):
            raise errors.not_created(self._schema)

    def _repair(self, spark: SparkSession) -> None:
        """Gives a table of events that has never been used, and has times without a time zone, the right columns."""
        path = self._locate(spark)
        if path is None:
            return
        events = EventLog(spark, path)
        state = events.state(events.update())
        if _is_unused(state) and events.replace_columns(state.handle, tables.columns_ddl()):
            creation.create_views(spark, self._schema, self._configured_path, replace=True)

    def _appears(self, spark: SparkSession) -> bool:
        """Returns whether the catalog is there, now or in a moment."""
        deadline = time.monotonic() + CREATION_SECONDS_MAX
        while True:
            self.refresh(spark)
            if self._is_loaded() or time.monotonic() > deadline:
                return self._is_loaded()
            time.sleep(0.1)

    def _show_here(self, spark: SparkSession) -> None:
        """Replaces, the first time that this process writes, views of an earlier streamql; of a catalog that is shared by path, also makes
        those that its metastore lacks."""
        if self._is_shown or not self._is_loaded():
            return
        self._is_shown = True
        try:
            if self._configured_path is None:
                creation.replace_outdated_views(spark, self._schema, None)
            else:
                self.lacks_views(spark, fix=True)
        except Exception as e:  # who may not make views consumes all the same
            log.debug("no views of the catalog: %s", e)

    def lacks_views(self, spark: SparkSession, *, fix: bool) -> bool:
        """Returns whether views are missing or outdated: their maker died first, or was an earlier streamql. `fix`: they are made."""
        self.refresh(spark)
        if not self._is_loaded() or not creation.lacks_views(spark, self._schema, self._configured_path):
            return False
        if fix:  # without the lock: the extension reads the catalog meanwhile, in another thread
            creation.create_views(spark, self._schema, self._configured_path)
        return True

    # -- state

    def _is_loaded(self) -> bool:
        return self._base is not None

    def _load(self, log: EventLog, snapshot: JavaObject) -> None:
        state = log.state(snapshot)
        self._clear()
        if not state.exists:
            return
        version = state.configuration.get(tables.VERSION_KEY)
        if version is None or not version.isdigit() or int(version) > tables.VERSION:
            raise errors.of_other_version(self._schema, version)
        if _is_unused(state):
            return  # the first event repairs it
        wrong = tables.misfit(state.schema)
        if wrong is not None:
            raise errors.altered(self._schema, wrong)
        self._contents = Contents(state.transactions)
        self._contents.apply(state.domains)
        self._version, self._table_id, self._base = state.version, state.table_id, snapshot

    def _replay(self, spark: SparkSession, path: str, snapshot: JavaObject, version: int) -> bool:
        """Follows the new commits; False where only reading the whole state is right."""
        if not 0 <= version - self._version <= REPLAY_COMMITS_MAX or snapshot.metadata().id() != self._table_id:
            return False
        table = DeltaTable(spark, path)
        try:
            commits = table.commits(table.described(snapshot), self._version, version)
        except CommitMissing:
            return False
        if any(c.metadata is not None or c.operation == "RESTORE" for c in commits):
            return False
        for commit in commits:
            self._contents.numbers.update(commit.transactions)
            self._contents.apply(commit.domains)
        self._version, self._base = version, snapshot
        return True

    def _clear(self) -> None:
        self._version, self._table_id, self._base = -1, "", None
        self._contents = Contents()


def _is_unused(state: EventState) -> bool:
    """Returns whether a table of events is as an earlier streamql left it that could not write it: with times that have no time zone."""
    return state.version == 0 and tables.has_local_times(state.schema)


_catalogs: dict[tuple[str, str, str | None], Catalog] = {}
_catalogs_lock = threading.Lock()


def catalog_of(spark: SparkSession) -> Catalog:
    """Returns the catalog that the session's settings name: spark.streamql.catalog (a schema), spark.streamql.catalogLocation (a path)."""
    schema = settings.text(spark, settings.CATALOG)
    path = settings.text(spark, settings.CATALOG_LOCATION) or None
    key = (str(spark.sparkContext.applicationId), schema, path)
    with _catalogs_lock:
        if key not in _catalogs:
            _catalogs[key] = Catalog(schema, None if path is None else path.rstrip("/") + "/" + tables.EVENTS)
        return _catalogs[key]
