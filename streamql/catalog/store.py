"""The catalog of streams: reads its state, and writes events. Each event is a compare-and-set on the streams that it concerns.

The state is in Delta's domain metadata: one domain for each stream, and one for each name. The commit of an event changes the domains. It
also adds the event's row, which users read, and a SetTransaction with the stream's id and the event's number. RESTORE of the table does not
take back SetTransactions. Delta refuses a commit if another commit has changed one of the same domains since the snapshot that it is based
on. This is the compare-and-set. Commits for different streams do not conflict.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streamql import settings
from streamql.catalog import creation, errors, tables, upkeep
from streamql.catalog.contents import Contents
from streamql.catalog.definitions import Entry, uuid_of
from streamql.catalog.observers import Event, tell_recorded
from streamql.catalog.states import StreamState
from streamql.delta.jvm import JavaObject, sentence
from streamql.delta.log import CommitMissing
from streamql.delta.names import schema_location, view_text
from streamql.delta.neutral import neutral_clone
from streamql.delta.table import DeltaTable
from streamql.delta.txns import EventLog, EventState
from streamql.errors import StreamqlError
from streamql.names import Name, quote
from streamql.sources.definitions import Definition, DefinitionType

REPLAY_COMMITS_MAX = 1000
"""If there are more new commits than this, the whole state is read instead of these commits."""
CREATION_SECONDS_MAX = 2.0
"""How long a process waits for a catalog that another process creates at the same time."""
RECENT_SECONDS = 2.0
"""A commit does not read the catalog again if this process used it less than so long ago. Delta refuses it if its entries have changed."""

Before = Sequence[Entry]
After = Sequence[Entry | None]

log = logging.getLogger("streamql")


class Catalog:
    """The catalog that a session uses. All sessions of an application that use the same catalog share one object. Safe for threads."""

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
        """Returns the id of the table of events when it was last read; empty: it was not read yet, or does not exist."""
        return self._table_id

    @property
    def path(self) -> str:
        """Returns the path of the table of events; empty: it was not looked for yet, or does not exist."""
        return self._path or ""

    # -- reading

    def refresh(self, spark: SparkSession) -> None:
        """Reads the commits since the last read. Raises CATALOG_UNREADABLE if the log or the table cannot be read."""
        with self._lock:
            path = self._path
            try:
                path = self._locate(spark)
                if path is not None:
                    asked = time.monotonic()
                    self._follow(spark, path)
                    self._known_at = asked
            except (Py4JError, PySparkException) as e:  # errors of Delta, the metastore and the storage
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
            self._path = None  # the next read looks for the table again
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
        """Applies a commit of this process without reading it. Reads the log only if others have committed before or after it."""
        if version != self._version + 1 or int(snapshot.version()) != version:
            self.refresh(spark)
            return
        self._contents.numbers.update(numbers)
        self._contents.apply(domains)
        self._version, self._base, self._known_at = version, snapshot, time.monotonic()

    def find(self, spark: SparkSession, name: Name) -> StreamState | None:
        """Returns the stream of a name, as of now; None: no stream has it. Raises CATALOG_UNREADABLE, such as for a damaged entry."""
        with self._lock:
            self.refresh(spark)
            return self._contents.find(name)

    def by_uuid(self, spark: SparkSession, uuid: str) -> StreamState | None:
        """Returns a stream by its id, as of now; None: there is no such stream."""
        with self._lock:
            self.refresh(spark)
            return self._contents.get(uuid)

    def last_read(self, spark: SparkSession, uuid: str) -> StreamState | None:
        """Returns a stream by its id, as this process last read or wrote it. Reads the catalog only if this process does not know the
        stream. It is meant for changes: `commit` refuses one that is based on an outdated state."""
        with self._lock:
            return self._contents.get(uuid) or self.by_uuid(spark, uuid)

    def definition(self, spark: SparkSession, name: Name, type_: DefinitionType | None = None) -> Definition | None:
        """Returns the definition of a name, as of now; None: no definition of the type has the name. `type_`: None: any type. Raises
        CATALOG_UNREADABLE, for example if its entry is damaged."""
        with self._lock:
            self.refresh(spark)
            found = self._contents.find_definition(name)
            return found if found is not None and type_ in (None, found.type) else None

    def definitions(self, spark: SparkSession, type_: DefinitionType | None = None) -> list[Definition]:
        """Returns the definitions whose entries can be read, sorted by name. `type_`: only those of this type; None: all."""
        with self._lock:
            self.refresh(spark)
            return sorted(
                (d for d in self._contents.definitions.values() if type_ in (None, d.type)),
                key=lambda d: (d.name.key, d.uuid),
            )

    def all(self, spark: SparkSession) -> list[StreamState]:
        """Returns the streams whose entries can be read, sorted by name, without the hidden streams of dynamic tables."""
        with self._lock:
            self.refresh(spark)
            return self._contents.shown()

    def unreadable(self) -> list[StreamqlError]:
        """Returns an error for each entry that could not be read at the last read. Each says what to do."""
        with self._lock:
            return self._contents.unreadable()

    def contradictions(self) -> list[str]:
        """Returns what is inconsistent, at the last read; empty unless another program wrote to the catalog."""
        with self._lock:
            return self._contents.contradictions()

    def was_restored(self, state: StreamState) -> bool:
        """Returns whether RESTORE took the table of events back to before the stream's last event: its offset cannot be trusted."""
        with self._lock:
            now = self._contents.streams.get(state.stream.uuid)
            return now is not None and self._contents.numbers.get(now.stream.uuid, 0) > now.sequence

    def number_of(self, state: StreamState) -> int:
        """Returns the number of the stream's last event, even if the table of events was restored to an earlier version."""
        return max(self._contents.numbers.get(state.stream.uuid, 0), state.sequence)

    def outcome_of(self, spark: SparkSession, consumption_id: str) -> str | None:
        """Returns the outcome of a consumption by the ledger: CONSUMED if one of its rows says so. None: the ledger has no row of it."""
        rows = self.ledger(spark)
        if rows is None:
            return None
        mine = rows.where(rows.consumption_id == consumption_id).select("outcome").collect()
        said = {str(r["outcome"]) for r in mine}
        return "CONSUMED" if "CONSUMED" in said else next(iter(said), None)

    def ledger(self, spark: SparkSession) -> DataFrame | None:
        """Returns the rows of the consumptions that have ended, which the view `consumptions` shows. None: there is no catalog yet."""
        rows = self.events(spark)
        return None if rows is None else rows.where(tables.IS_CONSUMPTION)

    def events(self, spark: SparkSession) -> DataFrame | None:
        """Returns all rows of the table of events. None: there is no catalog yet."""
        self.refresh(spark)
        if not self._is_loaded() or not self._path:
            return None
        return EventLog(spark, self._path).frame(self._base)

    # -- writing

    def commit(self, spark: SparkSession, before: Before, after: After, events: Sequence[Event]) -> bool:
        """Commits events: replaces the entries `before` by the entries `after`. None in `after`: the entry is dropped. An entry that only
        `after` has is new. Returns False, and writes nothing, if another process has changed one of them or taken a name since. Tells
        observers of the events."""
        is_done = self._committed(spark, before, after, events)
        if is_done:
            tell_recorded(spark, events, after)
        return is_done

    def _committed(self, spark: SparkSession, before: Before, after: After, events: Sequence[Event]) -> bool:
        self._show_here(spark)
        if not self._is_loaded() or time.monotonic() - self._known_at > RECENT_SECONDS:
            self._create(spark)  # without the lock: its SQL statements read this catalog in other threads
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
        """Removes a broken name, with its entry if that is damaged (`Contents.without`). Returns False if the name is not broken."""
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
        """Does one round of upkeep now; does nothing if there is no catalog."""
        self.refresh(spark)
        if self._is_loaded():
            upkeep.maintain(neutral_clone(spark), self._table)

    def _is_written(self, spark: SparkSession, base: int, domains: Mapping[str, str | None]) -> bool:
        """Returns whether a refused commit is in the log all the same, after version `base`. Storage may write a commit and report a
        failure. Delta then retries, finds the commit, and takes it for one of another process. The state of now does not show it, because
        other processes may have committed since. A commit of another process with equal domains has the same numbers and ids, and so the
        same effect."""
        table = DeltaTable(spark, self._path or "")
        try:
            commits = table.commits(table.latest(), base, self._version, files=False)
            return any(domains.items() <= c.domains.items() for c in commits)
        except CommitMissing:  # the log keeps commits for a day: this commit took longer
            return False

    # -- place and creation

    def _locate(self, spark: SparkSession) -> str | None:
        if self._path is None:
            self._path = self._configured_path
        if self._path is None:
            location = schema_location(spark, self._schema)
            self._path = None if location is None else f"{location}/{tables.EVENTS}"
        return self._path

    def _has_been(self, spark: SparkSession) -> bool:
        """Returns whether the session's metastore has the view of this catalog's ledger, so that the catalog has existed."""
        ledger = view_text(spark, self._schema, tables.CONSUMPTIONS)
        return ledger is not None and tables.events_name(self._schema, self._configured_path) in ledger

    def _create(self, spark: SparkSession) -> None:
        self.refresh(spark)
        if self._is_loaded():
            return
        try:
            self._repair(spark)
            creation.create(spark, self._schema, self._configured_path)
        except Exception:  # if two processes create it at once, one gets an error, and finds what the other one creates
            if not self._appears(spark):
                raise
        if not self._appears(spark):
            raise errors.not_created(self._schema)

    def _repair(self, spark: SparkSession) -> None:
        """Corrects the columns of a table of events that is `_is_unused`."""
        path = self._locate(spark)
        if path is None:
            return
        events = EventLog(spark, path)
        state = events.state(events.update())
        if _is_unused(state) and events.replace_columns(state.handle, tables.columns_ddl()):
            creation.create_views(spark, self._schema, self._configured_path, replace=True)

    def _appears(self, spark: SparkSession) -> bool:
        """Waits up to `CREATION_SECONDS_MAX` for the catalog to exist. Returns whether it does."""
        deadline = time.monotonic() + CREATION_SECONDS_MAX
        while True:
            self.refresh(spark)
            if self._is_loaded() or time.monotonic() > deadline:
                return self._is_loaded()
            time.sleep(0.1)

    def _show_here(self, spark: SparkSession) -> None:
        """Replaces views of an earlier streamql, when this process writes for the first time. If the catalog is shared by path, creates
        missing views, too."""
        if self._is_shown or not self._is_loaded():
            return
        self._is_shown = True
        try:
            if self._configured_path is None:
                creation.replace_outdated_views(spark, self._schema, None)
            else:
                self.lacks_views(spark, fix=True)
        except Exception as e:  # a user without permission to create views may consume all the same
            log.debug("no views of the catalog: %s", e)

    def lacks_views(self, spark: SparkSession, *, fix: bool) -> bool:
        """Returns whether views are missing (the creator of the catalog died first) or outdated. `fix`: creates them."""
        self.refresh(spark)
        if not self._is_loaded() or not creation.lacks_views(spark, self._schema, self._configured_path):
            return False
        if fix:  # without the lock: the SQL statements read this catalog in other threads
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
            return  # the first event repairs the table (`_repair`)
        wrong = tables.misfit(state.schema)
        if wrong is not None:
            raise errors.altered(self._schema, wrong)
        self._contents = Contents(state.transactions)
        self._contents.apply(state.domains)
        self._version, self._table_id, self._base = state.version, state.table_id, snapshot

    def _replay(self, spark: SparkSession, path: str, snapshot: JavaObject, version: int) -> bool:
        """Applies the new commits, and returns True. Returns False if the whole state must be read: the commits are too many, are not all
        in the log, or have changed the metadata or restored the table."""
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
    """Returns whether a table of events was created, and never written, by an earlier streamql that gave its times no time zone."""
    return state.version == 0 and tables.has_local_times(state.schema)


_catalogs: dict[tuple[str, str, str | None], Catalog] = {}
_catalogs_lock = threading.Lock()


def catalog_of(spark: SparkSession) -> Catalog:
    """Returns the catalog that the session's settings name: `spark.streamql.catalog` (schema), `spark.streamql.catalogLocation` (path)."""
    schema = settings.text(spark, settings.CATALOG)
    path = settings.text(spark, settings.CATALOG_LOCATION) or None
    key = (str(spark.sparkContext.applicationId), schema, path)
    with _catalogs_lock:
        if key not in _catalogs:
            _catalogs[key] = Catalog(schema, None if path is None else path.rstrip("/") + "/" + tables.EVENTS)
        return _catalogs[key]
