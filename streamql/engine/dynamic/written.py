"""The commits of a backing table: which are refreshes, and which are other statements'.

A refresh compares the query with the rows that the backing table has at a version, and commits the difference some versions later. So it
notes the first of the two in its commit: what other writers committed in between it has not seen.
"""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from streamql.delta.log import Commit, CommitMissing
from streamql.delta.neutral import dynamic_session
from streamql.delta.table import DeltaTable
from streamql.model import Parts
from streamql.names import quote
from streamql.sources.queries.dynamic import DynamicTable

COMMITS_LOOKED_AT_MAX = 1000
"""Among so many commits of a backing table its last refresh is looked for."""

_COMPARED, _THROUGH = "streamql.compared", "streamql.through"
_OPERATIONS = frozenset(("MERGE", "WRITE"))


def note(compared: int, through: Parts) -> str:
    """Returns what a refresh notes in its commit: the version of the backing table that it compared, and the versions of the tables that
    its query was computed at."""
    return json.dumps({_COMPARED: compared, _THROUGH: str(through)})


def is_refresh(commit: Commit, table: DynamicTable) -> bool:
    """Returns whether a commit is a refresh of the table. What fences a refresh whose process died has its number too, and no rows."""
    is_ours = any(app_id.split(":")[1:2] == [table.stream_id] for app_id in commit.transactions)
    return is_ours and commit.operation in _OPERATIONS


def refresh_after(backing: DeltaTable, version: int, table: DynamicTable) -> Commit | None:
    """Returns the first refresh behind a version of the backing table. None: there is none."""
    latest = backing.latest()
    commits = backing.commits(latest, version, latest.version, files=False)
    return next((c for c in commits if is_refresh(c, table)), None)


def written_by_others(spark: SparkSession, table: DynamicTable, position: Parts | None = None) -> bool:
    """Returns whether a statement other than a refresh has changed the rows of the table, and no refresh has seen that.

    `position`: the versions of other tables at which the rows should be. If the last refresh wrote them at others, the backing table or the
    catalog was put back from a copy. None: this is not looked at."""
    backing = DeltaTable(spark, table.backing.path)
    latest = backing.latest()
    compared: int | None = None
    for version in range(latest.version, max(0, latest.version - COMMITS_LOOKED_AT_MAX), -1):
        if compared is not None and version <= compared:
            return False
        try:
            (commit,) = backing.commits(latest, version - 1, version)
        except CommitMissing:
            return True
        if is_refresh(commit, table):
            if compared is None:
                if position is not None and _noted(commit).get(_THROUGH, str(position)) != str(position):
                    return True
                compared = _compared(commit)
        elif any(change.data_change for change in commit.changes):
            return True
    return False


def drop_duplicates(spark: SparkSession, table: DynamicTable) -> None:
    """Deletes rows with one key, which only other writers make: a refresh can tell rows apart by their keys alone, and inserts the one
    that should be there."""
    keys = [quote(k) for k in table.keys]
    several = f"SELECT {', '.join(keys)} FROM {table.backing.name.sql} GROUP BY {', '.join(keys)} HAVING count(*) > 1"
    own = dynamic_session(spark)
    if own.sql(several).isEmpty():
        return
    same = " AND ".join(f"t.{k} <=> s.{k}" for k in keys)
    rows = f"{table.backing.name.sql} AS t USING ({several}) AS s ON {same}"
    own.sql(f"MERGE INTO {rows} WHEN MATCHED THEN DELETE").collect()


def _compared(commit: Commit) -> int:
    """Returns the version that a refresh has compared; of one that says none: the version before its own."""
    found = _noted(commit).get(_COMPARED)
    return found if isinstance(found, int) else commit.version - 1


def _noted(commit: Commit) -> dict[str, object]:
    try:
        found = json.loads(commit.user_metadata or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
