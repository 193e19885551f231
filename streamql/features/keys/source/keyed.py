"""A Delta table whose rows are recognized by a declared key: it is found again after it was replaced, if its log continues.

CREATE OR REPLACE TABLE and RESTORE give a table another id, and keep its log. So the table is recognized by the id that the log has at a
version that the stream saw. DROP and CREATE begin another log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamql.changes import schema
from streamql.changes.plan import ChangePlan, Piece, PlanType
from streamql.delta.jvm import sentence
from streamql.delta.log import Json
from streamql.delta.names import look_up
from streamql.delta.table import Snapshot
from streamql.dialect.statements import SetTableProperties
from streamql.engine.properties import set_table_properties
from streamql.errors import StreamqlError
from streamql.features.keys.declared import declared_key, key_columns
from streamql.features.keys.failures import explained
from streamql.features.keys.source.changes import key_is_missing, keyed_changes
from streamql.features.keys.source.columns import comparable, has_same_types
from streamql.features.keys.source.plan import plan_appended, plan_keyed
from streamql.model import Interval, Offset, SourceRef, StreamMode, TableSource, Versions, version_of
from streamql.names import Name, quote_if_needed
from streamql.sources.protocol import SourceType
from streamql.sources.tables.history import TRACKING_LINE, check_all_trackable
from streamql.sources.tables.image import check_files_exist
from streamql.sources.tables.replaced import COMPARED
from streamql.sources.tables.source_type import peek
from streamql.sources.tables.table import OpenTable, delta_tables_beside, open_table, opened

log = logging.getLogger("streamql")

NAME = "keyed table"

_TRACKING = "delta.enableRowTracking"


@dataclass(frozen=True)
class KeyedTable(TableSource):
    """A reference to a Delta table whose rows are recognized by a key.

    `key`: the names of its columns. `known_at`: a version at which the table had the id `table_id`; None: it had that id at the stream's
    offset.
    """

    key: tuple[str, ...] = ()
    known_at: int | None = None

    @property
    def type_name(self) -> str:
        """Returns the name of its type in `sources.registry`."""
        return NAME

    def is_table(self, table_id: str, path: str, id_at: Callable[[int], str | None] | None = None) -> bool:
        """Returns whether this refers to a table: by its id or, if that was replaced, by its path, or by the id that its log has."""
        if table_id == self.table_id or _plain(path) == _plain(self.path):
            return True
        return id_at is not None and self.known_at is not None and id_at(self.known_at) == self.table_id

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form, which `from_json` reads."""
        return {**super().to_json(), "key": list(self.key), "known_at": self.known_at}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KeyedTable:
        """Returns the source that `to_json` wrote. Raises LookupError, TypeError or ValueError for anything else."""
        return _keyed(TableSource.from_json(data), tuple(map(str, data["key"])), data["known_at"])

    @property
    def shown_identity(self) -> str:
        """Returns the identity as SHOW STREAMS shows it."""
        return f"KEY ({', '.join(map(quote_if_needed, self.key))})"


def _plain(path: str) -> str:
    """Returns a path without the scheme of local files, and without a slash at its end."""
    rest = path.removeprefix("file:")
    return ("/" + rest.lstrip("/") if path.startswith(("file:", "/")) else rest).rstrip("/")


def _keyed(table: TableSource, key: tuple[str, ...], known_at: int | None) -> KeyedTable:
    return KeyedTable(table.name, table.path, table.table_id, table.seen, key=key, known_at=known_at)


@dataclass(frozen=True)
class OpenKeyed(OpenTable):
    """A table that was found, with its newest version. Rows are recognized by the key of `ref`."""

    ref: KeyedTable

    @property
    def needs_tracking(self) -> bool:
        """Returns False: rows are recognized by their key."""
        return False

    def check_trackable(self, mode: StreamMode, where: Mapping[str, int]) -> None:  # noqa: ARG002 - as the table's own
        """Raises RESERVED_COLUMN_NAME, CHANGE_TRACKING_DISABLED, INVALID_PROPERTY for a column that cannot be of a key."""
        check_all_trackable([self], where)
        key_columns(self.ref.key, schema.fields(self.snapshot.metadata), str(self.ref.name))

    def check_start(self, offset: Offset) -> None:
        """Checks that the log has an offset and all commits since. Raises INVALID_POINT_IN_TIME."""
        version = version_of(offset.position)
        try:
            self.commits(Versions(version, self.latest))
            self.at(version)
        except StreamqlError as e:
            raise StreamqlError(
                "INVALID_POINT_IN_TIME",
                f"a stream cannot start at version {version}: {e.message}",
                hint="leave the point out to start from now",
            ) from e

    def check_history(self, offset: Offset, seen: SourceRef, stream: Name) -> None:
        """Checks that the log is the one that the stream read. Raises STREAM_SOURCE_REPLACED if another log began at the table's place,
        and STREAM_STALE if the log ends before the offset or no longer has it."""
        assert isinstance(seen, TableSource)
        if seen.table_id == self.ref.table_id:
            super().check_history(offset, seen, stream)
            return
        version = version_of(offset.position)
        known_at = seen.known_at if isinstance(seen, KeyedTable) and seen.known_at is not None else version
        if max(version, known_at) > self.latest or self.at(known_at).table_id != seen.table_id:
            raise StreamqlError(
                "STREAM_SOURCE_REPLACED",
                f"{self.ref.name} was dropped and created again: its log, with all that stream {stream} had still to read, is lost",
                hint=f"CREATE OR REPLACE STREAM {stream} ON TABLE {self.ref.name} IDENTITY = KEY. {COMPARED}",
                source=str(self.ref.name),
                table_id=seen.table_id,
            )

    def changes(self, interval: Interval, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval. Lazy."""
        versions = interval.versions
        if versions.initial:
            check_files_exist(self, versions.through if mode is StreamMode.STANDARD else versions.after)
        return keyed_changes(self, versions, mode)

    def bitwise_changes(self, versions: Versions, mode: StreamMode) -> DataFrame:
        """Returns the change set of an interval with all updates whose values differ in any bit. Lazy."""
        return keyed_changes(self, versions, mode, bitwise=True)

    def are_same_columns(self, then: Json, now: Json) -> bool:
        """Returns whether the names of columns stand for the same columns, with the same types, in two metadata of its log. Those of a
        replaced table are found by their names."""
        if then["id"] == now["id"] and schema.shares_columns(then, now):
            return super().are_same_columns(then, now)
        return has_same_types(then, now)

    def continues(self, seen: TableSource) -> bool:
        """Returns whether its log is the one of which `seen` was read."""
        if seen.table_id == self.ref.table_id:
            return super().continues(seen)
        return isinstance(seen, KeyedTable) and seen.known_at is not None and self.id_at(seen.known_at) == seen.table_id

    def comparable(self, then: Json, now: Snapshot) -> Json:
        """Returns metadata of an earlier version, in which columns have the identities of those in a later one: of their names, if the
        table was replaced in between. Raises INCOMPATIBLE_SCHEMA_CHANGE."""
        return comparable(then, now.metadata, now.version, str(self.ref.name))

    def key_at(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Returns the columns of the key in the names of a version. Raises INCOMPATIBLE_SCHEMA_CHANGE if it lacks one."""
        fields = schema.fields(snapshot.metadata)
        names = self.ref.key
        if snapshot.table_id == self.snapshot.table_id and snapshot.version != self.latest:
            names = _renamed(names, self.snapshot.metadata, snapshot.metadata)
        found = {str(f["name"]).lower(): str(f["name"]) for f in fields}
        missing = [name for name in names if name.lower() not in found]
        if missing:
            raise key_is_missing(str(self.ref.name), snapshot.version, missing[0])
        return tuple(found[name.lower()] for name in names)

    def batch_end(self, interval: Interval, mode: StreamMode, rows_max: int) -> int:
        """Returns the end of a batch, as `OpenTable.batch_end`. If the key is not unique there, the batch goes on to the first commit after
        which it is. If there is none, it is that of the whole interval, whose rows raise the error."""
        end = super().batch_end(interval, mode, rows_max)
        through = version_of(interval.through)
        while end < through and not self._has_unique_keys(Interval(interval.after, end, interval.initial), mode):
            end += 1
        return end

    def _at_most(self, interval: Interval, mode: StreamMode, rows_max: int) -> bool:
        try:
            return super()._at_most(interval, mode, rows_max)
        except Exception as e:
            if explained(e) is None:
                raise
            return False

    def _has_unique_keys(self, interval: Interval, mode: StreamMode) -> bool:
        try:
            self.changes(interval, mode).count()
        except Exception as e:
            if explained(e) is None:
                raise
            return False
        return True

    def plan(self, versions: Versions, mode: StreamMode) -> ChangePlan:
        """Returns the plan to read an interval. The type NOTHING means that the interval has no changes."""
        commits = self.commits(versions)
        self.key_at(self.snapshot)  # raises an error that SHOW STREAMS shows, which plans and reads no rows
        if mode is StreamMode.STANDARD and not versions.initial:
            return plan_keyed(commits, versions)
        files = plan_appended(commits)
        pieces = [p for r in files.rewrites for p in (*r.removed, *r.added)] + [Piece(+1, f) for _, f in files.appended]
        plan_type = PlanType.INITIAL_ROWS if versions.initial else PlanType.APPENDED if pieces else PlanType.NOTHING
        return ChangePlan(plan_type, versions, pieces=tuple(pieces))


def open_keyed(spark: SparkSession, source: KeyedTable, *, by_name: bool = False) -> OpenKeyed:
    """Finds the table: by its id as other tables, else as the table that is at its path, else as the one that has its name. Whether its log
    is the one that a stream read, `OpenKeyed.check_history` tells. `by_name`: as `open_table` has it. Raises STREAM_SOURCE_MISSING,
    STREAM_SOURCE_REPLACED."""
    try:
        found: OpenTable = open_table(spark, _plain_source(source), by_name=by_name)
    except StreamqlError as e:
        if e.code not in ("STREAM_SOURCE_REPLACED", "STREAM_SOURCE_MISSING"):
            raise
        continued = _continued(spark, source)
        if continued is None:
            raise
        found = continued
    key = source.key
    if source.known_at is not None and found.latest > source.known_at and schema.is_mapped(found.snapshot.metadata):
        with suppress(StreamqlError):  # the log no longer has that version
            then = found.table.at(source.known_at)
            if then.table_id == found.snapshot.table_id:
                key = _renamed(key, then.metadata, found.snapshot.metadata)
    return OpenKeyed(spark, _keyed(found.ref, key, found.latest), found.table, found.snapshot)


def _continued(spark: SparkSession, source: KeyedTable) -> OpenTable | None:
    """Returns the table that continues the log of a source, although its id was replaced: one of its schema, under any name. If there is
    none, returns the Delta table that has the source's name now. None: there is none either."""
    now = look_up(spark, source.name)
    for name, found in delta_tables_beside(spark, source.name):
        table = opened(spark, replace(_plain_source(source), name=name, path=found.path, table_id=found.table_id))
        if source.known_at is not None and table.id_at(source.known_at) == source.table_id:
            return table
    if now.type != "delta":
        return None
    return opened(spark, replace(_plain_source(source), path=now.path, table_id=now.table_id))


def _plain_source(source: KeyedTable) -> TableSource:
    return TableSource(source.name, source.path, source.table_id, source.seen)


def _renamed(key: Sequence[str], old: Json, new: Json) -> tuple[str, ...]:
    """Returns the names that columns have in other metadata of one table. One that the other lacks keeps its name."""
    identities = {str(f["name"]).lower(): schema.identity(f) for f in schema.fields(old)}
    names = {schema.identity(f): str(f["name"]) for f in schema.fields(new)}
    return tuple(names.get(identities.get(name.lower(), ""), name) for name in key)


def by_key(spark: SparkSession, source: SourceRef) -> KeyedTable | None:
    """Returns the table of a source with its rows recognized by the key that it declares now; None: the source is not a table. Raises
    PRIMARY_KEY_NOT_DECLARED, INVALID_PROPERTY, STREAM_SOURCE_MISSING."""
    if not isinstance(source, TableSource):
        return None
    known_at = source.known_at if isinstance(source, KeyedTable) else None if source.seen is None else source.seen[0]
    snapshot = open_keyed(spark, _keyed(source, (), known_at)).snapshot
    key = declared_key(snapshot.configuration, schema.fields(snapshot.metadata), str(source.name))
    return _keyed(source, key, known_at)


def track_again(spark: SparkSession, source: KeyedTable) -> None:
    """Switches change tracking on if a replacement of the table has switched it off. Without it, all rows of rewritten files are compared,
    and no row tells its version. Warns if the session's user may not alter the table, and of another writer that commits at the same
    time."""
    table = open_keyed(spark, source)
    if _TRACKING in table.snapshot.configuration:  # it is on, or a user has switched it off
        return
    name = table.ref.name
    try:
        set_table_properties(spark, SetTableProperties(name.parts, change_tracking=True))
        log.warning("%s has lost the property of change tracking, which is switched on again", name)
    except Exception as e:  # the consumption has ended, and the next one tries again
        log.warning(
            "%s has lost the property of change tracking. To switch it on: %s. %s",
            name,
            TRACKING_LINE.format(name),
            sentence(e),
        )


KEYED = SourceType(
    name=NAME,
    label="TABLE",
    read=KeyedTable.from_json,
    open=open_keyed,
    find=lambda *_: None,
    peek=peek,
    identity="KEY",
    identify=by_key,
    shown_identity=lambda source: source.shown_identity,
    named=partial(open_keyed, by_name=True),
    consumed=track_again,
)
