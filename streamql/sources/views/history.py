"""Positions in the histories of a query's tables: points in time, the commits in the order of their times, and batches."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from streamql.delta.log import Commit
from streamql.errors import StreamqlError
from streamql.model import Interval, Parts, StreamMode, version_of
from streamql.sources.batches import longest_prefix, rows_touched_max
from streamql.sources.protocol import Point
from streamql.sources.views import reading
from streamql.sources.views.positions import QueryOverTables, TablesOfQuery, versions_of

log = logging.getLogger("streamql")


def versions_at(source: TablesOfQuery, point: Point) -> dict[str, int]:
    """Returns the version of each table that a point names, by part. Raises INVALID_POINT_IN_TIME."""
    if point.positions is not None:
        return _named(source, point)
    if point.version is not None and source.only_table is None:
        raise no_versions(source, point)
    return {part: version_of(table.offset_at(point).position) for part, table in source.tables.items()}


def _named(source: TablesOfQuery, point: Point) -> dict[str, int]:
    """Returns the versions of a point that names them by table. Tables that the point leaves out keep the stream's present version."""
    assert point.positions is not None
    found = dict(point.base.numbers) if isinstance(point.base, Parts) else {}
    for name, version in point.positions.numbers:
        parts = _parts_named(source, name)
        if len(parts) != 1:
            what = "no table" if not parts else "several tables"
            raise StreamqlError(
                "INVALID_POINT_IN_TIME",
                f"{source.ref.name} reads {what} named {name}",
                hint=f"write the full names: '{source.latest}'",
                **point.where,
            )
        at = source.tables[parts[0]].offset_at(Point(version, None, False, point.span))
        found[parts[0]] = version_of(at.position)
    missing = [part for part in source.tables if part not in found]
    if missing:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"the version of the table {missing[0]} is missing",
            hint=f"name all tables: '{source.latest}' are their latest versions",
            **point.where,
        )
    return found


def _parts_named(source: TablesOfQuery, name: str) -> list[str]:
    """Returns the parts (tables) that a name stands for: that with this full name, else all whose name without catalog and schema it is."""
    wanted = name.lower()
    whole = [part for part in source.tables if part.lower() == wanted]
    return whole or [part for part, t in source.tables.items() if t.ref.name.object.lower() == wanted]


def no_versions(source: TablesOfQuery, point: Point) -> StreamqlError:
    """Returns the error for a point that is a version, or the one before an offset, if the query reads several tables."""
    return StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"the {source.label} {source.ref.name} reads several tables, so one version number does not name an offset",
        hint=f"name a time (TIMESTAMP => …), or the version of each table: '{source.latest}'",
        **point.where,
    )


def _commits(source: TablesOfQuery, interval: Interval) -> list[tuple[str, Commit]]:
    """Returns the commits of an interval, each with its part, in the order of their times. Commits of one table stay in the order of their
    versions."""
    timed: list[tuple[int, str, int, Commit]] = []
    for part, table in source.tables.items():
        commits = table.commits(versions_of(interval, part))
        # A commit may have an earlier time than the one before it.
        times = accumulate((c.time_ms for c in commits), max)
        timed += [(time, part, c.version, c) for time, c in zip(times, commits, strict=True)]
    return [(part, commit) for _, part, _, commit in sorted(timed, key=lambda t: t[:3])]


def steps(source: TablesOfQuery, interval: Interval) -> list[Parts]:
    """Returns the position after each commit of an interval, in the order of the commits' times."""
    return _positions(interval, _commits(source, interval))


def _positions(interval: Interval, commits: Sequence[tuple[str, Commit]]) -> list[Parts]:
    assert isinstance(interval.after, Parts)
    reached, positions = dict(interval.after.numbers), []
    for part, commit in commits:
        reached[part] = commit.version
        positions.append(Parts.of(reached))
    return positions


def batch_end(source: QueryOverTables, interval: Interval, mode: StreamMode, rows_max: int) -> Parts:
    """Returns the end of the longest part of an interval, from its begin, with at most `rows_max` changes. It has whole commits, and at
    least one."""
    commits = _commits(source, interval)
    positions = _positions(interval, commits)
    certain = 0
    if source.query.reads_one_table_once:  # then a branch has at most one change for each change of its table
        times = len(source.query.branches)
        touched = list(accumulate(times * rows_touched_max(commit) for _, commit in commits))
        certain = bisect_right(touched, rows_max)

    def at_most(count: int) -> bool:
        try:
            return reading.fits(source, interval.after, positions[count - 1], mode, rows_max)
        except StreamqlError as e:  # these commits cannot be read together; fewer of them may be readable
            log.info("the batch ends before %s: %s", positions[count - 1], e)
            return False

    return positions[max(1, longest_prefix(len(commits), certain, at_most)) - 1]
