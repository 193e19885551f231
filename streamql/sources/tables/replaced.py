"""What to type if the source of a stream was replaced."""

from __future__ import annotations

from streamql.delta.log import CommitMissing
from streamql.model import TableSource
from streamql.sources.tables.history import COMMITS_MAX, TRACKING_LINE, TableVersions
from streamql.sources.tables.primary_key import is_declared

COMPARED = "Changes that were not consumed are lost: docs/merge-recipes.md#a-source-that-was-replaced compares source and target"
"""The part about the target in the hint for a source that was replaced."""


def replaced_hint(source: TableSource, at_path: TableVersions, named: TableVersions | None) -> str:
    """Returns the hint for a table that was replaced: how to continue the stream by key, or how to create it on the new table.

    `at_path`: the table at the source's path. `named`: the table that has its name now; None: no Delta table has it.
    """
    again = "CREATE OR REPLACE the stream on the new table"
    if named is None:
        return again
    if at_path.table.path == named.table.path and _continues(at_path, source):
        is_keyed = is_declared(named.snapshot.configuration)
        declare = "" if is_keyed else f"ALTER TABLE {source.name} ADD PRIMARY KEY (…) RELY; "
        return f"{declare}ALTER STREAM … SET IDENTITY = KEY continues it: docs/rebuilt-tables.md"
    if not named.tracks_changes:
        again = f"{TRACKING_LINE.format(source.name)}; {again}"
    return f"{again}. {COMPARED}"


def _continues(found: TableVersions, source: TableSource) -> bool:
    """Returns whether the log of a table is the one that a stream read, although the table has another id: CREATE OR REPLACE keeps the
    log. Only an error asks this, because it reads the log as far as it goes back."""
    first, latest = found.table.earliest()[0], found.snapshot.version
    if first < 0 or latest - first > COMMITS_MAX:
        return False
    try:
        commits = found.table.commits(found.snapshot, first - 1, latest, files=False)
    except CommitMissing:
        return False
    return any(c.metadata is not None and c.metadata["id"] == source.table_id for c in commits)
