"""Objects of the catalog whose rows are in a Delta table of another name, such as dynamic tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.store import catalog_of
from streamql.delta.images import select
from streamql.model import TableSource
from streamql.names import Name, quote
from streamql.registered import registered
from streamql.sources.definitions import Definition


@dataclass(frozen=True)
class StoredTable:
    """An object that shows the rows of a Delta table; it is a `RowQuery` over them. `columns`: the columns that it shows."""

    definition: Definition
    table: TableSource
    columns: Sequence[str]

    @property
    def name(self) -> Name:
        """Returns the name of the object."""
        return self.definition.name

    def rows(self, rows: DataFrame, carried: Sequence[str] = ()) -> DataFrame:
        """Returns rows of the Delta table in the columns `carried`, and then those that the object shows. Lazy."""
        return select(rows, [quote(c) for c in (*carried, *self.columns)])


def stored_tables(spark: SparkSession) -> list[StoredTable]:
    """Returns all such objects. Raises CATALOG_UNREADABLE."""
    found = map(_stored, catalog_of(spark).definitions(spark))
    return [stored for stored in found if stored is not None]


def stored_table(spark: SparkSession, name: Name) -> StoredTable | None:
    """Returns the object of a name; None: no such object has the name. Raises CATALOG_UNREADABLE."""
    definition = catalog_of(spark).definition(spark, name)
    return None if definition is None else _stored(definition)


def stored_in(spark: SparkSession, table_id: str) -> StoredTable | None:
    """Returns the object whose rows are in the Delta table of an id; None: there is no such object. Raises CATALOG_UNREADABLE."""
    return next((stored for stored in stored_tables(spark) if stored.table.table_id == table_id), None)


def as_shown(spark: SparkSession, table_id: str, rows: DataFrame) -> DataFrame:
    """Returns rows of a Delta table as the object over that table shows them: in the object's columns. If there is no such object, returns
    the rows as they are."""
    stored = stored_in(spark, table_id)
    return rows if stored is None else stored.rows(rows)


def _stored(definition: Definition) -> StoredTable | None:
    return next((found for shown in registered("stored") if (found := shown(definition)) is not None), None)
