"""The change set of a query: of each branch, from the change sets and the images of the tables that it reads. Lazy."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from streamql.changes import HIDDEN_COLUMNS, change_set
from streamql.changes.schema import check_names
from streamql.delta.images import select
from streamql.delta.queries import BranchRows
from streamql.model import METADATA_COLUMNS, Interval, Position, StreamMode, Versions
from streamql.names import quote
from streamql.sources.tables.table import OpenTable
from streamql.sources.views.positions import parts_of, versions_of

if TYPE_CHECKING:
    from streamql.sources.views.query import OpenQuery


def check_columns(source: OpenQuery, where: Mapping[str, int]) -> None:
    """Raises RESERVED_COLUMN_NAME if a column of the query is named like a metadata column of streams."""
    name = str(source.ref.name)
    check_names(source.query.columns, name, f"CREATE OR REPLACE VIEW {name} AS SELECT … AS another_name", **where)


def changes(source: OpenQuery, interval: Interval, mode: StreamMode) -> DataFrame:
    """Returns the net changes of the query's rows: the metadata columns, the query's columns, the hidden ones.

    APPEND_ONLY: rows that have a new row of a table in them: new rows as they were first inserted, the others as of the interval's end.
    `METADATA$ROW_ID` is text: the ids of the table rows that a row is made of, and the numbers of the UNION ALL branches, with colons
    between them. `__commit_version` is NULL if the query reads several tables.
    """
    reader = _Reader(source, interval, mode)
    branches = [reader.branch(i) for i in range(len(source.query.branches))]
    return functools.reduce(DataFrame.union, branches)


def keyed_changes(
    source: OpenQuery, interval: Interval, keys: Sequence[str], values: Sequence[Sequence[str | int | None]]
) -> DataFrame:
    """Returns the net changes of a query whose branches read one table each: the metadata columns, the query's columns, those of `keys`,
    the hidden ones. INSERT, DELETE and UPDATE_AFTER only; of the metadata and hidden columns all but the type are NULL. `values`: by
    branch, what the keys are: "id", the table's row id; a number; or None, NULL. Lazy."""
    reader = _Reader(source, interval, StreamMode.STANDARD)
    branches = [reader.keyed(i, keys, own) for i, own in enumerate(values)]
    return functools.reduce(DataFrame.union, branches)


_ROW_ID = next(name for name in HIDDEN_COLUMNS if name.endswith("ROW_ID"))


class _Reader:
    """Makes the branches. What several of them need of a table is made once."""

    def __init__(self, source: OpenQuery, interval: Interval, mode: StreamMode) -> None:
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
            # Of an interval without changes the files of its begin may be gone.
            at = self._begin if self._interval.initial else self._end
            before = query.image(i, [self._image(part, at) for part in leaves])
            before = before if self._interval.initial else before.limit(0)
            return before if made is None else before.union(made)
        return made

    def keyed(self, i: int, keys: Sequence[str], values: Sequence[str | int | None]) -> DataFrame:
        """Returns a branch that reads one table once, with key columns."""
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
        """Returns a branch that reads one table once: its filters and projections are put below the comparison of old and new rows."""
        table, query = self._source.tables[part], self._source.query
        return change_set(
            table.spark,
            table.table.path,
            self._versions[part],
            self._mode,
            table.table,
            table.snapshot,
            _Followed(BranchRows(query, i), table, self._versions[part].through),
        )

    def _shown(self, rows: DataFrame, i: int) -> DataFrame:
        """Returns a row id as text, behind the numbers of the branch; no version if there are several tables."""
        version = "__commit_version" if len(self._parts) == 1 else "CAST(NULL AS BIGINT) AS __commit_version"
        path = "".join(f"{number}:" for number in self._source.query.paths[i])
        columns = [METADATA_COLUMNS[0], version, METADATA_COLUMNS[2], *(quote(c) for c in self._source.query.columns)]
        for name in HIDDEN_COLUMNS:
            is_id = name.lower().endswith("row_id")
            columns.append(f"CONCAT('{path}', {quote(name)}) AS {quote(name)}" if is_id else quote(name))
        return select(rows, columns)

    def _changed(self, part: str) -> DataFrame | None:
        """Returns a table's change set; None: the log says that it has no change."""
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
class _Followed:
    """A branch over the rows of an interval that ended at `through`: the query was analysed over the table's present columns. Some of
    them may have had another name then, or may have replaced another column of their name."""

    branch: BranchRows
    table: OpenTable
    through: int

    @property
    def columns(self) -> Sequence[str]:
        return self.branch.columns

    def rows(self, rows: DataFrame, carried: Sequence[str]) -> DataFrame:
        now = self.table.followed(rows, self.through, self.table.latest, carried, ())
        return self.branch.rows(now, carried)


def fits(source: OpenQuery, after: Position, through: Position, mode: StreamMode, rows_max: int) -> bool:
    """Returns whether a part of an interval has at most `rows_max` changes. Counts them, in a job."""
    return changes(source, Interval(after, through), mode).limit(rows_max + 1).count() <= rows_max
