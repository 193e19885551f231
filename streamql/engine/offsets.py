"""Offsets of streams against the history of their source: where a stream can start, and what moving an offset skips or repeats."""

from __future__ import annotations

from streamql.catalog.states import StreamState
from streamql.changes.plan import check_row_tracking
from streamql.delta.log import Commit
from streamql.errors import StreamqlError, counted
from streamql.model import Interval, Offset, StreamMode
from streamql.sources.table import OpenSource, backlog
from streamql.times import iso

COMMITS_MAX = 10_000
"""An error message names the earliest start of a stream only if it is found among so many commits."""

_TRACKING = "delta.enableRowTracking"


def check_start(source: OpenSource, offset: Offset) -> None:
    """Check that a stream can start at an offset: all commits since then can be read as changes. Raises INVALID_POINT_IN_TIME."""
    try:
        check_row_tracking(source.commits(Interval(offset.version, source.latest.version)))
        start = source.latest if offset.version == source.latest.version else source.table.at(offset.version)
    except StreamqlError as e:
        raise _cannot_start(source, offset, e.message) from e
    if start.configuration.get(_TRACKING) != "true":
        raise _cannot_start(source, offset, "change tracking was switched on later")


def _cannot_start(source: OpenSource, offset: Offset, why: str) -> StreamqlError:
    message = f"a stream cannot start at version {offset.version}: {why}"
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


def earliest_start(source: OpenSource) -> tuple[int, int] | None:
    """Return the earliest version that a stream can start at, and its commit time in milliseconds since 1970.

    None if the log does not tell: it has more than COMMITS_MAX commits, lost one, or the table does not track changes now.
    """
    latest = source.latest
    first, _ = source.table.earliest()
    if first < 0 or latest.version - first > COMMITS_MAX or latest.configuration.get(_TRACKING) != "true":
        return None
    try:
        start = source.table.at(first)
        commits = source.commits(Interval(first, latest.version))
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
    """Tell whether a commit kept the identity of the rows that it rewrote."""
    try:
        check_row_tracking([commit])
    except StreamqlError:
        return False
    return True


def describe_move(source: OpenSource, state: StreamState, offset: Offset) -> str | None:
    """Say how many versions and rows a stream skips, or shows again, when its offset is set. None if no change lies between.

    The number of rows is an upper bound, from the log alone. `offset` is a version of the source.
    """
    old, new = state.offset, offset
    if old.version > source.latest.version:  # the source was put back: its history does not hold the old offset
        return f"stream {state.name} was set from version {old.version} to version {new.version}"
    between = Interval(min(old.version, new.version), max(old.version, new.version))
    skips_initial = old.initial and not new.initial
    try:
        rows = _rows_max(source, between, state.stream.mode, old.version if skips_initial else None)
    except StreamqlError:
        with_rows = "the log no longer tells how many rows they changed"
    else:
        if rows == 0:
            return None
        with_rows = f"at most {counted(rows, 'row')}" if rows else "the log does not tell how many rows"
    verb = "goes back over" if new.version < old.version else "skips"
    versions = f"{counted(between.through - between.after, 'version')} ({old.version} to {new.version})"
    what = versions if not between.is_empty else f"the rows that its source had at version {old.version}"
    return f"stream {state.name} {verb} {what}: {with_rows}"


def _rows_max(source: OpenSource, interval: Interval, mode: StreamMode, initial: int | None) -> int | None:
    """Count the changed rows of an interval, and the rows of the version `initial` (None: of no version); never too few.

    None if the log does not tell. Raises STREAM_STALE and what planning the interval raises.
    """
    counts: list[int | None] = []
    if not interval.is_empty:
        found = backlog(source, interval, mode)
        counts += [found.rows_added, found.rows_removed] if found.has_data else []
    if initial is not None:
        counts += [file.rows for file in source.table.files(source.table.at(initial))]
    known = [n for n in counts if n is not None]
    return sum(known) if len(known) == len(counts) else None
