"""The statement that writes a backing table, and the commits of a backing table: which of them are refreshes, and which come from other
writers.

A refresh compares the query with the rows of the backing table at one version, and commits the difference at a later version. Its commit
notes the first of the two, because the refresh has not seen what other writers committed in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType

from streamql.changes.schema import has_same_columns
from streamql.delta.log import Commit, CommitMissing
from streamql.delta.neutral import dynamic_session
from streamql.delta.table import DeltaTable, Snapshot
from streamql.dialect import quote_string
from streamql.features.dynamic.source.queries import ROWS
from streamql.features.dynamic.source.table import DynamicTable
from streamql.model import Parts
from streamql.names import quote
from streamql.shared import constants

COMMITS_LOOKED_AT_MAX = 1000
"""The last refresh of a backing table is looked for among so many of its newest commits."""

_COMPARED, _THROUGH = "streamql.compared", "streamql.through"
_OPERATIONS = frozenset(("MERGE", "WRITE"))
_HIDDEN = constants("dynamicTables")["hiddenUpdate"]

# -- the statement


def write_statement(table: DynamicTable, backing: DeltaTable, before: Snapshot) -> str:
    """Returns the statement that writes the row changes of a refresh, which are the relation ROWS. `before`: the present backing table."""
    partitioned = set(before.metadata.get("partitionColumns") or ())
    strings = {f.name for f in backing.schema(before).fields if isinstance(f.dataType, StringType)} & partitioned
    values = {c: _partition_value(table, c) if c in strings else f"s.{quote(c)}" for c in table.stored_columns}
    return _insert(table, values) if backing.is_empty(before) else _merge(table, values)


def _partition_value(table: DynamicTable, column: str) -> str:
    """Returns the expression for a partition column of type STRING. It raises an error for an empty string: Delta would store NULL, and the
    row would differ from the query's."""
    why = (
        f"column {column} of {table.name} has an empty string, which Delta stores as NULL in a partition column: "
        f"use CLUSTER BY, or nullif({column}, '') in the query"
    )
    value = f"s.{quote(column)}"
    return f"CASE WHEN {value} = '' THEN raise_error({quote_string(why)}) ELSE {value} END"


def _insert(table: DynamicTable, values: Mapping[str, str]) -> str:
    # If other writers have filled the table meanwhile, there may also be DELETEs and UPDATEs. The next refresh compares all rows, and makes
    # these.
    columns = ", ".join(quote(c) for c in table.stored_columns)
    return (
        f"INSERT INTO {table.backing.name.sql} ({columns}) SELECT {', '.join(values.values())} FROM {ROWS} AS s "
        "WHERE __change_type = 'INSERT'"
    )


def _merge(table: DynamicTable, values: Mapping[str, str]) -> str:
    keys = {k.lower() for k in table.keys}
    same = " AND ".join(f"t.{quote(k)} <=> s.{quote(k)}" for k in table.keys)
    changed = [f"{quote(c)} = {value}" for c, value in values.items() if c.lower() not in keys]
    update = (
        f"WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET {', '.join(changed)} " if changed else ""
    )
    # An UPDATE_HIDDEN row sets all columns, because a row that is shown as before may have other keys now.
    every = ", ".join(f"{quote(c)} = {value}" for c, value in values.items())
    has_hidden = len(table.stored_columns) > len(table.columns)
    hidden = f"WHEN MATCHED AND s.__change_type = '{_HIDDEN}' THEN UPDATE SET {every} " if has_hidden else ""
    return (
        f"MERGE INTO {table.backing.name.sql} AS t USING (SELECT * FROM {ROWS}) AS s ON {same} "
        f"WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE {update}{hidden}"
        f"WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT ({', '.join(quote(c) for c in values)}) "
        f"VALUES ({', '.join(values.values())})"
    )


_METRICS = {
    "numTargetRowsInserted": "inserted",
    "numTargetRowsUpdated": "updated",
    "numTargetRowsDeleted": "deleted",
    "numOutputRows": "inserted",
}


def rows_of(metrics: Mapping[str, str]) -> dict[str, int]:
    """Returns how many rows a refresh inserted, updated and deleted, by the metrics of its commit."""
    found = {"inserted": 0, "updated": 0, "deleted": 0}
    is_merge = any(key.startswith("numTarget") for key in metrics)
    for key, name in _METRICS.items():
        if key in metrics and is_merge == key.startswith("numTarget"):
            found[name] += int(metrics[key])
    return found


# -- its commits


def note(compared: int, through: Parts) -> str:
    """Returns the text that a refresh puts into its commit: the version of the backing table that it compared, and the versions of the
    source tables at which its query was computed."""
    return json.dumps({_COMPARED: compared, _THROUGH: str(through)})


def is_refresh(commit: Commit, table: DynamicTable) -> bool:
    """Returns whether a commit is a refresh of the table. The fence of a refresh whose process died has the same application id, but
    another operation."""
    is_ours = any(app_id.split(":")[1:2] == [table.stream_id] for app_id in commit.transactions)
    return is_ours and commit.operation in _OPERATIONS


def refresh_after(backing: DeltaTable, version: int, table: DynamicTable) -> Commit | None:
    """Returns the first refresh after a version of the backing table. None: there is none."""
    latest = backing.latest()
    commits = backing.commits(latest, version, latest.version, files=False)
    return next((c for c in commits if is_refresh(c, table)), None)


def written_by_others(spark: SparkSession, table: DynamicTable, position: Parts | None = None) -> bool:
    """Returns whether another statement than a refresh has changed rows of the table or replaced columns, and no refresh has seen that
    since.

    `position`: the versions of the source tables at which the catalog says that the rows were computed. If the commit of the last refresh
    has others, the backing table or the catalog was put back from a copy. The result is True then. None: this is not checked.
    """
    backing = DeltaTable(spark, table.backing.path)
    latest = backing.latest()
    compared: int | None = None
    is_altered = False
    for version in range(latest.version, max(0, latest.version - COMMITS_LOOKED_AT_MAX), -1):
        if compared is not None and version <= compared:
            return False
        try:
            (commit,) = backing.commits(latest, version - 1, version)
        except CommitMissing:
            return True
        if is_refresh(commit, table):
            if compared is None:
                if is_altered and not has_same_columns(backing.at(version).metadata, latest.metadata):
                    return True
                if position is not None and _noted(commit).get(_THROUGH, str(position)) != str(position):
                    return True
                compared = _compared(commit)
        elif any(change.data_change for change in commit.changes):
            return True
        is_altered = is_altered or commit.metadata is not None
    return False


def drop_duplicates(spark: SparkSession, table: DynamicTable) -> None:
    """Deletes all rows whose key several rows have. Only other writers make such rows. A refresh identifies rows by their keys, and so
    could not tell them apart; it inserts the right row again."""
    keys = [quote(k) for k in table.keys]
    several = f"SELECT {', '.join(keys)} FROM {table.backing.name.sql} GROUP BY {', '.join(keys)} HAVING count(*) > 1"
    own = dynamic_session(spark)
    if own.sql(several).isEmpty():
        return
    same = " AND ".join(f"t.{k} <=> s.{k}" for k in keys)
    rows = f"{table.backing.name.sql} AS t USING ({several}) AS s ON {same}"
    own.sql(f"MERGE INTO {rows} WHEN MATCHED THEN DELETE").collect()


def _compared(commit: Commit) -> int:
    """Returns the version of the backing table that a refresh has compared. If its commit does not say, it is the version before its
    own."""
    found = _noted(commit).get(_COMPARED)
    return found if isinstance(found, int) else commit.version - 1


def _noted(commit: Commit) -> dict[str, object]:
    try:
        found = json.loads(commit.user_metadata or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
