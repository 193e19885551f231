"""The history of a table: where a stream can start, which version a point names, and what moving an offset skips or repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from streamql.changes.plan import ChangePlan, check_row_tracking
from streamql.changes.schema import check_reserved
from streamql.delta.log import Commit
from streamql.delta.table import DeltaTable, Snapshot
from streamql.errors import StreamqlError, counted
from streamql.model import Offset, StreamMode, TableSource, Versions, version_of
from streamql.names import Name
from streamql.sources.protocol import Point
from streamql.sources.tables.backlog import backlog
from streamql.times import iso, now_ms

COMMITS_MAX = 10_000
"""An error message names the earliest version at which a stream can start. It is not looked for if the log has more commits than this."""

_TRACKING = "delta.enableRowTracking"

TRACKING_LINE = "ALTER TABLE {} SET PROPERTIES ('change_tracking' = 'true')"


class TableVersions(Protocol):
    """What of an `OpenTable` is asked here."""

    @property
    def ref(self) -> TableSource:
        """Returns the table as a stream refers to it."""

    @property
    def table(self) -> DeltaTable:
        """Returns the table."""

    @property
    def snapshot(self) -> Snapshot:
        """Returns its newest version."""

    @property
    def latest(self) -> int:
        """Returns the number of its newest version."""

    @property
    def tracks_changes(self) -> bool:
        """Returns whether its newest version tracks changes."""

    @property
    def needs_tracking(self) -> bool:
        """Returns whether its changes can only be read while it tracks changes."""

    def at(self, version: int) -> Snapshot:
        """Returns a version. Raises STREAM_STALE if the log no longer has it."""

    def commits(self, versions: Versions) -> list[Commit]:
        """Returns the commits of an interval. Raises STREAM_STALE."""

    def plan(self, versions: Versions, mode: StreamMode) -> ChangePlan:
        """Returns how an interval would be read."""


def check_start(source: TableVersions, version: int) -> None:
    """Checks that a stream can start at a version: all commits since then can be read as changes. Raises INVALID_POINT_IN_TIME."""
    try:
        check_row_tracking(source.commits(Versions(version, source.latest)))
        start = source.at(version)
    except StreamqlError as e:
        raise _cannot_start(source, version, e.message) from e
    if start.configuration.get(_TRACKING) != "true":
        raise _cannot_start(source, version, "change tracking was switched on later")


def _cannot_start(source: TableVersions, at: int, why: str) -> StreamqlError:
    message = f"a stream cannot start at version {at}: {why}"
    found = earliest_start(source)
    if found is None:
        return StreamqlError("INVALID_POINT_IN_TIME", message, hint="leave the point out to start from now")
    version, time_ms = found
    return StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"{message}; the earliest version that a stream can start at is {version} ({iso(time_ms)})",
        hint=f"VERSION => {version}, or leave the point out to start from now",
        earliest_version=version,
        earliest_time_ms=time_ms,
    )


def earliest_start(source: TableVersions) -> tuple[int, int] | None:
    """Returns the earliest version that a stream can start at, and its commit time in milliseconds since 1970.

    None if the log does not tell: it has more than COMMITS_MAX commits or lacks one, or the table does not track changes now.
    """
    latest = source.snapshot
    first, _ = source.table.earliest()
    if first < 0 or latest.version - first > COMMITS_MAX or latest.configuration.get(_TRACKING) != "true":
        return None
    try:
        start = source.table.at(first)
        commits = source.commits(Versions(first, latest.version))
    except StreamqlError:
        return None
    version, time_ms, is_on = first, start.time_ms, start.configuration.get(_TRACKING) == "true"
    for commit in commits:
        was_on = is_on
        if commit.metadata is not None:
            is_on = (commit.metadata.get("configuration") or {}).get(_TRACKING) == "true"
        if not (was_on and is_on and _keeps_rows(commit)):
            version, time_ms = commit.version, commit.time_ms
    return version, time_ms


def _keeps_rows(commit: Commit) -> bool:
    """Returns whether a commit kept the ids of the rows that it rewrote."""
    try:
        check_row_tracking([commit])
    except StreamqlError:
        return False
    return True


def describe_move(source: TableVersions, stream: Name, mode: StreamMode, old: Offset, new: Offset) -> str | None:
    """Returns a text that says how many versions and rows a stream skips, or shows again, if its offset is set from `old` to `new`. None:
    there is no change between the two.

    The number of rows is an upper bound, from the log alone. `new` is a version that the source has.
    """
    before, after = version_of(old.position), version_of(new.position)
    if before > source.latest:  # the source was put back from a copy, and has no version of the old offset
        return f"stream {stream} was set from version {before} to version {after}"
    between = Versions(min(before, after), max(before, after))
    skips_initial = old.initial and not new.initial
    try:
        rows = _rows_max(source, between, mode, before if skips_initial else None)
    except StreamqlError:
        with_rows = "the log no longer tells how many rows they changed"
    else:
        if rows == 0:
            return None
        with_rows = f"at most {counted(rows, 'row')}" if rows else "the log does not tell how many rows"
    verb = "goes back over" if after < before else "skips"
    versions = f"{counted(between.through - between.after, 'version')} ({before} to {after})"
    what = versions if not between.is_empty else f"the rows that its source had at version {before}"
    return f"stream {stream} {verb} {what}: {with_rows}"


def _rows_max(source: TableVersions, interval: Versions, mode: StreamMode, initial: int | None) -> int | None:
    """Returns an upper bound of the changed rows of an interval plus the rows of the version `initial` (None: of no version).

    None: the log does not tell. Raises STREAM_STALE, and what planning the interval raises.
    """
    counts: list[int | None] = []
    if not interval.is_empty:
        found = backlog(source.plan(interval, mode), interval)
        counts += [found.rows_added, found.rows_removed] if found.has_data else []
    if initial is not None:
        counts += [file.rows for file in source.table.files(source.table.at(initial))]
    known = [n for n in counts if n is not None]
    return sum(known) if len(known) == len(counts) else None


def version_at(source: TableVersions, point: Point) -> int:
    """Returns the version that a point names. Raises INVALID_POINT_IN_TIME if that is before the table's history or after it."""
    if point.positions is not None:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"{source.ref.name} has versions, and no partitions",
            hint=f"SET OFFSET VERSION {source.latest}, or VERSION => {source.latest}, names the latest version",
            **point.where,
        )
    found = (
        _version_at_time(source, point) if point.version is None else _existing_version(source, point, point.version)
    )
    return checked(source, found, point)


def _existing_version(source: TableVersions, point: Point, version: int) -> int:
    if version > source.latest:
        raise _later(source, f"version {version} of {source.ref.name} does not exist yet", point)
    return version - 1 if point.before else version


def _version_at_time(source: TableVersions, point: Point) -> int:
    time_us = point.time_us
    assert time_us is not None
    time_ms = time_us // 1000
    # The latest commit may be later than now, because the clock of its writer may be ahead of this machine's.
    if time_ms > max(now_ms(), source.snapshot.time_ms):
        raise _later(source, f"{iso(time_ms)} lies in the future", point)
    # Commit times are whole milliseconds. For BEFORE, the time is rounded up to one, and the last commit at least a millisecond earlier is
    # taken: that is the last one before the time.
    version = source.table.version_at(-(-time_us // 1000) - 1 if point.before else time_ms)
    if version < 0:
        raise _outside(source, f"{iso(time_ms)} lies before the history of {source.ref.name}", point)
    return version


def checked(source: TableVersions, version: int, point: Point) -> int:
    """Returns the version if every commit after it is still in the log. It is enough that the next one is, because Delta removes the oldest
    commits first. Raises INVALID_POINT_IN_TIME."""
    if version < 0 or not (version == source.latest or source.table.has_commit(source.snapshot, version + 1)):
        raise _outside(source, f"version {version} lies before the history of {source.ref.name}", point)
    return version


def _later(source: TableVersions, what: str, point: Point) -> StreamqlError:
    latest = source.snapshot
    return StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"{what}: the latest version is {latest.version} ({iso(latest.time_ms)})",
        hint=f"VERSION => {latest.version} names the latest version",
        latest_version=latest.version,
        latest_time_ms=latest.time_ms,
        **point.where,
    )


def _outside(source: TableVersions, what: str, point: Point) -> StreamqlError:
    first, time_ms = earliest_start(source) or source.table.earliest()
    return StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"{what}: the earliest that can be read is version {first} ({iso(time_ms)})",
        hint=f"VERSION => {first}, or leave the point out to start from now",
        earliest_version=first,
        earliest_time_ms=time_ms,
        **point.where,
    )


def check_all_trackable(tables: Iterable[TableVersions], where: Mapping[str, int], *, is_created: bool = True) -> None:
    """Raises RESERVED_COLUMN_NAME for the first table with such a column, and CHANGE_TRACKING_DISABLED for all tables that do not track
    changes. `is_created`: whether what reads them is being created. Later, tables whose rows are recognized by their key need not track."""
    names = []
    for table in tables:
        check_reserved(table.snapshot.metadata, str(table.ref.name), **where)
        if not table.tracks_changes and (is_created or table.needs_tracking):
            names.append(str(table.ref.name))
    if not names:
        return
    *others, last = names
    shown = f"{', '.join(others)} and {last} do" if others else f"{last} does"
    raise StreamqlError(
        "CHANGE_TRACKING_DISABLED",
        f"{shown} not track changes",
        hint="; ".join(TRACKING_LINE.format(name) for name in names),
        table=names[0],
        **where,
    )
