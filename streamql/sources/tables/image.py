"""All rows of a Delta table as of one version, in the columns of that version or of a later one."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamql.changes.scan import followed
from streamql.changes.schema import Epoch, check_compatible, fields
from streamql.delta.log import FileState
from streamql.errors import StreamqlError, counted
from streamql.model import Versions
from streamql.names import quote
from streamql.sources.tables.table import OpenTable


def image(source: OpenTable, version: int, *, shown_at: int | None = None) -> DataFrame:
    """Returns the rows of a version. Lazy.

    `shown_at`: a later version, whose columns the rows get; columns that were added since are NULL. None: the rows have the columns of
    their own version. Raises STREAM_STALE if the log no longer has the version, and INCOMPATIBLE_SCHEMA_CHANGE.
    """
    snapshot = source.at(version)
    rows = source.table.image(snapshot)
    if shown_at is None or shown_at <= version:
        return rows
    later = source.table.at(shown_at)
    if snapshot.metadata["schemaString"] == later.metadata["schemaString"]:
        return rows
    check_compatible(Epoch(version, snapshot.metadata), later.metadata, shown_at)
    then, now = fields(snapshot.metadata), fields(later.metadata)
    return rows.select(*followed(lambda name: rows[quote(name)], then, now, source.table.schema(later)))


def check_files_exist(source: OpenTable, version: int) -> None:
    """Checks that the files of a version still exist. Only files that a later commit removed are checked, because VACUUM removes no others.
    Raises STREAM_STALE if one is missing."""
    seen: set[str] = set()
    removed: list[FileState] = []
    for commit in source.commits(Versions(version, source.latest)):
        for change in commit.changes:
            if change.path not in seen and change.before is not None:
                removed.append(change.before)
            seen.add(change.path)
    missing = source.table.missing_files(removed) if removed else []
    if missing:
        raise StreamqlError(
            "STREAM_STALE",
            f"VACUUM removed {counted(len(missing), 'data file')} of version {version} of {source.ref.name}, e.g. {missing[0]}",
            hint=source.table.stale(version).hint,
            files=missing[:10],
            version=version,
        )
