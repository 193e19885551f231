"""The change set of a query. It is the union of the change sets of its UNION ALL branches, which are lazy DataFrames.

The change set of a branch is made of the change sets and the images of the tables that it reads. An image is all rows of one version.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from streamql.changes import HIDDEN_COLUMNS, change_set
from streamql.changes.schema import check_names
from streamql.delta.images import select
from streamql.delta.queries import BranchRows
from streamql.model import METADATA_COLUMNS, Interval, Position, StreamMode, Versions
from streamql.names import quote
from streamql.sources.tables.table import OpenTable
from streamql.sources.views.positions import QueryOverTables, parts_of, versions_of


def check_columns(source: QueryOverTables, where: Mapping[str, int]) -> None:
    """Raises RESERVED_COLUMN_NAME if a column of the query is named like a metadata column of streams."""
    name = str(source.ref.name)
    check_names(source.query.columns, name, f"CREATE OR REPLACE VIEW {name} AS SELECT … AS another_name", **where)


def changes(source: QueryOverTables, interval: Interval, mode: StreamMode) -> DataFrame:
    """Returns the net changes of the query's rows: the metadata columns, then the query's columns, then the hidden columns.

    In the mode APPEND_ONLY it has the rows of the query that contain a new row of a table. In them, new table rows are as they were first
    inserted, and other table rows are as of the interval's end. `METADATA$ROW_ID` is text: the numbers of the UNION ALL branches and the
    ids of the table rows that a row is made of, separated by colons. `__commit_version` is NULL if the query reads several tables.
    """
    reader = _Reader(source, interval, mode)
    branches = [reader.branch(i) for i in range(len(source.query.branches))]
    return functools.reduce(DataFrame.union, branches)


def keyed_changes(
    source: QueryOverTables, interval: Interval, keys: Sequence[str], values: Sequence[Sequence[str | int | None]]
) -> DataFrame:
    """Returns the net changes of a query each of whose branches reads one table once. Lazy.

    The columns are the metadata columns, the query's columns, `keys`, and the hidden columns. There are no UPDATE_BEFORE rows. Of the
    metadata and hidden columns, all but the change type are NULL. `values`: for each branch, the values of the keys: "id" is the table's
    row id, a number is itself, and None is NULL.
    """
    reader = _Reader(source, interval, StreamMode.STANDARD)
    branches = [reader.keyed(i, keys, own) for i, own in enumerate(values)]
    return functools.reduce(DataFrame.union, branches)


_ROW_ID = next(name for name in HIDDEN_COLUMNS if name.endswith("ROW_ID"))


class _Reader:
    """Makes the change sets of the branches. If several branches need the same DataFrame of a table, it is made once."""

    def __init__(self, source: QueryOverTables, interval: Interval, mode: StreamMode) -> None:
        self._source, self._interval, self._mode = source, interval, mode
        self._parts = list(source.tables)
        self._versions = {part: versions_of(interval, part) for part in self._parts}
        self._begin, self._end = parts_of(interval.after), parts_of(interval.through)
        self._frames: dict[tuple[str, Versions, StreamMode], DataFrame] = {}

    def branch(self, i: int) -> DataFrame:
        query = self._source.query
        leaves = [self._parts[table] for table in query.branches[i]]
        if len(leaves) == 1:
            return self._shown(self._rows_of_one(i, leaves[0]), i)
        if self._interval.initial and self._mode is StreamMode.STANDARD:
            return query.image(i, [self._image(part, self._end) for part in leaves])
        changed = [self._changed(part) for part in leaves]
        is_appended = self._mode is StreamMode.APPEND_ONLY
        made = None
        if any(frame is not None for frame in changed):
            images = [self._image(part, self._end) for part in leaves]
            made = (query.appended if is_appended else query.changes)(i, changed, images)
        if self._interval.initial or made is None:
            # Without initial rows, this frame is only for its columns. It is made at the end of the interval, as files of the begin may be
            # gone.
            at = self._begin if self._interval.initial else self._end
            before = query.image(i, [self._image(part, at) for part in leaves])
            before = before if self._interval.initial else before.limit(0)
            return before if made is None else before.union(made)
        return made

    def keyed(self, i: int, keys: Sequence[str], values: Sequence[str | int | None]) -> DataFrame:
        """Returns the changes of a branch that reads one table once, with key columns (`keyed_changes`)."""
        (table,) = self._source.query.branches[i]
        type_, version, time = METADATA_COLUMNS
        rows = self._rows_of_one(i, self._parts[table]).where(f"{type_} <> 'UPDATE_BEFORE'")
        columns = [type_, f"CAST(NULL AS BIGINT) AS {version}", f"CAST(NULL AS TIMESTAMP) AS {time}"]
        columns += [quote(c) for c in self._source.query.columns]
        # A key that is NULL in one branch has its type from another one.
        of_table = {None: "NULL", "id": quote(_ROW_ID)}
        own = [str(value) if isinstance(value, int) else of_table[value] for value in values]
        columns += [f"{value} AS {quote(key)}" for key, value in zip(keys, own, strict=True)]
        types = ("STRING", "BOOLEAN", "STRING") * 2
        hidden = zip(HIDDEN_COLUMNS, types, strict=True)
        return select(rows, [*columns, *(f"CAST(NULL AS {t}) AS {quote(name)}" for name, t in hidden)])

    def _rows_of_one(self, i: int, part: str) -> DataFrame:
        """Returns the changes of a branch that reads one table once. Its filters and projections are applied before old and new rows are
        compared, so changes that the branch does not show disappear."""
        table, query = self._source.tables[part], self._source.query
        return change_set(
            table.spark,
            table.table.path,
            self._versions[part],
            self._mode,
            table.table,
            table.snapshot,
            _AtPresentColumns(BranchRows(query, i), table, self._versions[part].through),
        )

    def _shown(self, rows: DataFrame, i: int) -> DataFrame:
        """Returns rows with the row ids as text, behind the numbers of the branch. The version is NULL if the query reads several
        tables."""
        version = "__commit_version" if len(self._parts) == 1 else "CAST(NULL AS BIGINT) AS __commit_version"
        path = "".join(f"{number}:" for number in self._source.query.paths[i])
        columns = [METADATA_COLUMNS[0], version, METADATA_COLUMNS[2], *(quote(c) for c in self._source.query.columns)]
        for name in HIDDEN_COLUMNS:
            is_id = name.lower().endswith("row_id")
            columns.append(f"CONCAT('{path}', {quote(name)}) AS {quote(name)}" if is_id else quote(name))
        return select(rows, columns)

    def _changed(self, part: str) -> DataFrame | None:
        """Returns a table's change set; None: the log shows no change in the interval."""
        versions = self._versions[part]
        only = Versions(versions.after, versions.through)
        if only.is_empty or not self._source.tables[part].plan(only, self._mode).files:
            return None
        return self._frame(part, only, self._mode)

    def _image(self, part: str, position: Mapping[str, int]) -> DataFrame:
        version = position[part]
        return self._frame(part, Versions(version, version, True), StreamMode.STANDARD)

    def _frame(self, part: str, versions: Versions, mode: StreamMode) -> DataFrame:
        key = (part, versions, mode)
        if key not in self._frames:
            self._frames[key] = self._source.tables[part].changes_for_query(versions, mode)
        return self._frames[key]


@dataclass(frozen=True)
class _AtPresentColumns:
    """A branch over rows that have the table's columns of version `through`. The query was analysed with the table's present columns, so
    the rows are converted to these first. A column may have been renamed since, or may have replaced another one of the same name."""

    branch: BranchRows
    table: OpenTable
    through: int

    @property
    def columns(self) -> Sequence[str]:
        return self.branch.columns

    def rows(self, rows: DataFrame, carried: Sequence[str]) -> DataFrame:
        now = self.table.followed(rows, self.through, self.table.latest, carried, ())
        return self.branch.rows(now, carried)


def fits(source: QueryOverTables, after: Position, through: Position, mode: StreamMode, rows_max: int) -> bool:
    """Returns whether a part of an interval has at most `rows_max` changes. Runs a job that counts them."""
    return changes(source, Interval(after, through), mode).limit(rows_max + 1).count() <= rows_max
