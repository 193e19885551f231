"""What the tests of dynamic tables share: a schema with two tables, and what they say of dynamic tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count

from pyspark.sql import Row

from streamql.delta.neutral import dynamic_session
from streamql.features.dynamic.source.table import DynamicTable, all_dynamic
from tests.views.support import Place

_numbers = count(1)

HISTORY = "SHOW DYNAMIC TABLE REFRESH HISTORY"


@dataclass
class DynamicPlace(Place):
    """A schema that is the current one, with the tables t (id, v) and u (id, w)."""

    schema: str = field(default_factory=lambda: f"on_dynamic_{next(_numbers)}")

    def close(self) -> None:
        """Drops the schema's dynamic tables, whatever became of what they read, and its streams."""
        for table in all_dynamic(self.spark):
            if table.name.schema == self.schema:
                self.run(f"DROP {table.label} {table.name.sql}")
        super().close()

    def found(self, name: str = "d") -> DynamicTable:
        """A dynamic table as the catalog has it."""
        (table,) = [t for t in all_dynamic(self.spark) if (t.name.schema, t.name.object) == (self.schema, name)]
        return table

    def backing(self, name: str = "d") -> str:
        """The name of the table that a dynamic table's rows are in."""
        return str(self.found(name).backing.name)

    def create(self, query: str, name: str = "d", clauses: str = "") -> None:
        """Makes a dynamic table."""
        self.run(f"CREATE DYNAMIC TABLE {name} {clauses} AS {query}")

    def refresh(self, name: str = "d") -> dict[str, tuple[str, str | None, int, int, int]]:
        """Refreshes: by table the outcome, the reason, and the rows inserted, updated and deleted."""
        rows = self.run(f"REFRESH DYNAMIC TABLE {name}")
        return {r["name"].rpartition(".")[2]: (r["outcome"], r["reason"], *r[4:7]) for r in rows}

    def verify(self, name: str = "d") -> tuple[str, int, int, int]:
        """The verdict, and how many rows there are, are missing and are unexpected."""
        (row,) = self.run(f"VERIFY DYNAMIC TABLE {name}")
        return row[1], row[2], row[3], row[4]

    def facts(self, name: str = "d") -> dict[str, str | None]:
        """What DESC says."""
        return {row[0]: row[1] for row in self.run(f"DESC DYNAMIC TABLE {name}")}

    def explained(self, name: str = "d") -> dict[str, str | None]:
        """What EXPLAIN REFRESH says."""
        return {row[0]: row[1] for row in self.run(f"EXPLAIN REFRESH DYNAMIC TABLE {name}")}

    def operators(self, name: str = "d") -> list[str]:
        """How EXPLAIN REFRESH says that the operators are computed, the outermost first."""
        return [str(text) for fact, text in self.explained(name).items() if fact.startswith("operator")]

    def versions(self, name: str = "d") -> dict[str, int]:
        """The versions that a dynamic table was computed at, by the last parts of names."""
        said = json.loads(self.facts(name)["source_versions"] or "{}")
        return {part.rpartition(".")[2]: version for part, version in said.items()}

    def history(self, name: str = "d") -> list[Row]:
        """Its refreshes, the newest first."""
        return self.run(f"{HISTORY} FOR {name}")

    def write(self, text: str) -> None:
        """Runs a statement as an engine without the extension would: `{d}` in it is the table that the rows of d are in."""
        dynamic_session(self.spark).sql(text.format(d=self.backing())).collect()

    def tables(self) -> set[str]:
        """The names of the schema's tables and views, also of the tables that dynamic tables have their rows in."""
        patterns = ("*", "__dynamic_*")
        return {
            row["tableName"] for like in patterns for row in self.run(f"SHOW TABLES IN {self.schema} LIKE '{like}'")
        }
