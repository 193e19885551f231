"""Analysed queries over Delta tables: which tables they read, and the rows of their changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import JavaObject, frame, java_frame, java_list, scala, sentence, session_of
from streamql.errors import StreamqlError
from streamql.model import TableSource
from streamql.names import Name


@dataclass(frozen=True)
class TrackedQuery:
    """A query that is a UNION ALL of branches. A branch has filters, projections, and inner and cross joins of Delta tables.

    `refused`: why the query does not have this form, as a key of `REFUSED` in `sources/views/texts.py`; None: it has it. `tables`: the
    tables that it reads, each once. `branches`: for each branch, the indices of the tables that it reads, in their order in the branch.
    `paths`: for each branch, its number in every UNION ALL above it. `columns`: of the query. `texts`: of the views in the query, outermost
    first.
    """

    spark: SparkSession
    handle: JavaObject
    refused: str | None
    tables: tuple[TableSource, ...]
    branches: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def reads_one_table_once(self) -> bool:
        """Returns whether the query reads only one table, and each of its branches reads that once."""
        return len(self.tables) == 1 and all(len(leaves) == 1 for leaves in self.branches)

    def image(self, branch: int, images: Sequence[DataFrame]) -> DataFrame:
        """Returns all rows of a branch as INSERTs, in the columns of a stream. `images`: of each table that it reads."""
        return frame(self.spark, self._joined(branch).image(self._frames(images), self._has_one_table))

    def changes(self, branch: int, changed: Sequence[DataFrame | None], images: Sequence[DataFrame]) -> DataFrame:
        """Returns the net changes of a branch, in the columns of a stream. `changed`: the change set of each table that it reads; None: the
        table has not changed. `images`: of each table, as of the interval's end."""
        joined = self._joined(branch)
        return frame(self.spark, joined.standard(self._frames(changed), self._frames(images), self._has_one_table))

    def appended(self, branch: int, added: Sequence[DataFrame | None], images: Sequence[DataFrame]) -> DataFrame:
        """Returns the rows of a branch that contain a new row of a table. `added`: the new rows of each table that it reads; None: it has
        none. `images`: of each table, as of the interval's end."""
        joined = self._joined(branch)
        return frame(self.spark, joined.appended(self._frames(added), self._frames(images), self._has_one_table))

    @property
    def _has_one_table(self) -> bool:
        return len(self.tables) == 1

    def _joined(self, branch: int) -> JavaObject:
        return self.handle.joined(branch)

    def _frames(self, frames: Sequence[DataFrame | None]) -> JavaObject:
        return java_list(self.spark, [None if one is None else java_frame(one) for one in frames])


@dataclass(frozen=True)
class BranchRows:
    """A branch that reads one table once, as a function of that table's rows. It is a `RowQuery`, which `changes.change_set` takes."""

    query: TrackedQuery
    branch: int

    @property
    def columns(self) -> Sequence[str]:
        """Returns the columns of the branch."""
        return self.query.columns

    def rows(self, rows: DataFrame, carried: Sequence[str]) -> DataFrame:
        """Returns the branch's rows over the given rows of its table: first the columns `carried` of the table's row, then its own.
        Lazy."""
        made = self.query.handle.over(self.branch, java_frame(rows), json.dumps(list(carried)))
        return frame(rows.sparkSession, made)


def lineage_of(spark: SparkSession, plan: JavaObject) -> str:
    """Returns from which columns of what a query reads its columns are computed: JSON of the Scala class `Lineage`."""
    return str(scala(spark).lineage.ColumnLineage.json(plan))


def query_of_view(spark: SparkSession, name: Name) -> TrackedQuery:
    """Returns the query of a view. Raises STREAM_SOURCE_MISSING, with Spark's error, if it cannot be analysed."""
    try:
        handle = scala(spark).queries.TrackedQuery.view(session_of(spark), name.catalog, name.schema, name.object)
    except (AnalysisException, Py4JJavaError) as e:
        _broken(name, e)
    return described(spark, handle)


def described(spark: SparkSession, handle: JavaObject) -> TrackedQuery:
    """Returns a query that the extension has analysed. `handle`: the `TrackedQuery` of the JVM."""
    said = json.loads(handle.describe())
    tables = tuple(TableSource(_name(t["name"]), t["path"], t["id"]) for t in said.get("tables", ()))
    branches = tuple(tuple(leaves) for leaves in said.get("branches", ()))
    paths = tuple(tuple(path) for path in said.get("paths", ()))
    columns, texts = tuple(said["columns"]), tuple(said["texts"])
    return TrackedQuery(spark, handle, said.get("refused"), tables, branches, paths, columns, texts)


def _name(parts: Sequence[str]) -> Name:
    return Name.of(["spark_catalog", *parts][-3:])


def has_earlier_types(e: BaseException) -> bool:
    """Returns whether Spark's error says that a value cannot be cast. That happens if a struct got new fields after a view of it was
    created."""
    condition = getattr(e, "getCondition", lambda: None)()
    return isinstance(condition, str) and condition.startswith("DATATYPE_MISMATCH.CAST")


def _broken(name: Name, e: BaseException) -> NoReturn:
    again = f"CREATE OR REPLACE VIEW {name} with the same text, which gives its columns the types that they have now"
    raise StreamqlError(
        "STREAM_SOURCE_MISSING",
        f"the view {name} cannot be read: {sentence(e)}",
        hint=f"{again}: the stream continues where it was; or DROP the stream"
        if has_earlier_types(e)
        else "correct the view, or the table that it reads; or DROP the stream",
        source=str(name),
    ) from e
