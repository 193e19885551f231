"""A table that is changed, rebuilt and replaced at random, and what its versions held: for the oracle by key."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from tests.consume.support import fresh_schema, run
from tests.histories.columns import COLUMN_TYPES, canonical

KEYS = 30
TYPES = ("double", "string", "map", "struct", "variant")
Key = tuple[Hashable, ...]
Values = tuple[Hashable, ...]
CHANGES = ("insert", "update", "update", "delete", "merge")
REBUILDS = (
    "overwrite", "partitions", "where", "replace", "replace", "frame", "schema", "reload", "rewrite", "clone",
)  # fmt: skip
OTHERS = ("restore", "optimize", "untrack", "widen")


@dataclass
class Rebuilt:
    """The table `t` (k, part, v, w): its key is (k, part), and k may be NULL.

    `snapshots`: by version, the rows by their keys. `restored`: versions that a RESTORE made. `columns`: of each version.
    """

    spark: SparkSession
    rng: random.Random
    snapshots: dict[int, dict[Key, Values]] = field(default_factory=dict)
    columns: dict[int, list[str]] = field(default_factory=dict)
    restored: set[int] = field(default_factory=set)
    is_tracked: bool = True
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = [t for t in TYPES if t in COLUMN_TYPES]
        self.types = [COLUMN_TYPES[name] for name in self.rng.sample(known, 2)]
        self.partitioned = " PARTITIONED BY (part)" if self.rng.random() < 0.5 else ""
        names = self.rng.random() < 0.5
        mapping = ", 'delta.columnMapping.mode' = 'name'" if names else ""
        vectors = f", 'delta.enableDeletionVectors' = '{str(self.rng.random() < 0.5).lower()}'"
        self.properties = f"TBLPROPERTIES ('change_tracking' = 'true'{mapping}{vectors})"
        v, w = (t.sql_type for t in self.types)
        self.run(f"CREATE TABLE t (k INT, part INT, v {v}, w {w}) USING delta{self.partitioned} {self.properties}")
        self.run("ALTER TABLE t ADD PRIMARY KEY (k, part) RELY")
        self.note()

    # -- statements

    def run(self, text: str) -> None:
        self.log.append(text)
        run(self.spark, text)

    def newest(self) -> int:
        row = self.spark.sql("DESCRIBE HISTORY t LIMIT 1").first()
        assert row is not None
        return int(row["version"])

    def note(self) -> None:
        """Notes what the versions held that came since the last call."""
        for version in range(max(self.snapshots, default=-1) + 1, self.newest() + 1):
            rows = self.spark.sql(f"SELECT * FROM t VERSION AS OF {version}")
            self.columns[version] = rows.columns
            found = [
                (canonical(r["k"]), r["part"], tuple(canonical(r[c]) for c in rows.columns)) for r in rows.collect()
            ]
            self.snapshots[version] = {(k, part): values for k, part, values in found}
            assert len(self.snapshots[version]) == len(found)

    def values(self, salt: int) -> str:
        """Two expressions for v and w, which depend on the key and a number."""
        first, second = (t.sql_at(f"abs(coalesce(k, 7) + {salt + i})") for i, t in enumerate(self.types))
        return f"{first} AS v, {second} AS w"

    def keys(self, count: int) -> str:
        return ", ".join(map(str, self.rng.sample(range(KEYS), count)))

    def rows(self) -> str:
        """A query of rows of the table as they are, with some changed, some left out and some added."""
        salt, more = (
            self.rng.randrange(9),
            [c for c in self.columns[max(self.columns)] if c not in ["k", "part", "v", "w"]],
        )
        extra = "".join(f", {c}" for c in more)
        nulls = "".join(f", NULL AS {c}" for c in more)
        changed = self.keys(4)
        kept = f"SELECT k, part, v, w{extra} FROM t WHERE NOT coalesce(k, -1) IN ({changed})"
        other = f"SELECT k, part, {self.values(salt)}{extra} FROM t WHERE coalesce(k, -1) IN ({changed}) AND k % 3 > 0"
        new = f"SELECT k, k % 3, {self.values(salt)}{nulls} FROM (SELECT explode(array({self.keys(5)})) AS k) n"
        new += " WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = n.k)"
        return f"SELECT {', '.join(self.columns[max(self.columns)])} FROM ({kept} UNION ALL {other} UNION ALL {new})"

    # -- one random change

    def change(self, kinds: Sequence[str]) -> None:
        kind = self.rng.choice(kinds)
        self.log.append(f"-- {kind}")
        try:
            getattr(self, f"_{kind}")()
        except Exception as e:
            if "[DELTA_" not in str(e):  # Delta refuses some, such as a clone that switches column mapping on
                raise
            self.log.append(f"refused: {str(e)[:80]}")
        self.note()

    def _insert(self) -> None:
        new = [k for k in self.rng.sample(range(KEYS), 6) if not any(key[0] == k for key in self.latest)]
        null = [] if any(key[0] is None for key in self.latest) else ["CAST(NULL AS INT)"]
        keys = ", ".join([*map(str, new), *null])
        if keys:
            values = f"coalesce(k % 3, 0), {self.values(1)}"
            self.run(f"INSERT INTO t (k, part, v, w) SELECT k, {values} FROM (SELECT explode(array({keys})) AS k)")

    @property
    def latest(self) -> dict[Key, Values]:
        return self.snapshots[max(self.snapshots)]

    def _update(self) -> None:
        column, data_type = self.rng.choice([("v", self.types[0]), ("w", self.types[1])])
        self.run(
            f"UPDATE t SET {column} = {data_type.literal(self.rng.randrange(9))} WHERE k IN ({self.keys(5)}) OR k IS NULL"
        )

    def _delete(self) -> None:
        self.run(f"DELETE FROM t WHERE k IN ({self.keys(5)})")

    def _merge(self) -> None:
        source = f"SELECT k, k % 3 AS part, {self.values(self.rng.randrange(9))} FROM (SELECT explode(array({self.keys(8)})) AS k)"
        self.run(
            f"MERGE INTO t USING ({source}) n ON t.k = n.k WHEN MATCHED AND n.k % 5 = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET v = n.v, w = n.w WHEN NOT MATCHED THEN INSERT (k, part, v, w) VALUES (n.k, n.part, n.v, n.w)"
        )

    def _overwrite(self) -> None:
        self.run(f"INSERT OVERWRITE t {self.rows()}")

    def _partitions(self) -> None:
        part = self.rng.randrange(3)
        frame = self.spark.sql(f"SELECT * FROM ({self.rows()}) WHERE part = {part}").localCheckpoint()
        writer = frame.write.format("delta").mode("overwrite")
        if self.partitioned:
            self.log.append(f"dynamic overwrite of part {part}")
            writer.option("partitionOverwriteMode", "dynamic").insertInto("t")
        else:
            self._where()

    def _where(self) -> None:
        part = self.rng.randrange(3)
        self.log.append(f"replaceWhere part = {part}")
        frame = self.spark.sql(f"SELECT * FROM ({self.rows()}) WHERE part = {part}").localCheckpoint()
        frame.write.format("delta").mode("overwrite").option("replaceWhere", f"part = {part}").saveAsTable("t")

    def _replace(self) -> None:
        properties = self.rng.choice(("", f" {self.properties}"))
        query = self.rows()
        if self.rng.random() < 0.3:
            query = f"SELECT *, length(string(k)) AS more FROM (SELECT k, part, v, w FROM ({query}))"
        self.run(f"CREATE OR REPLACE TABLE t USING delta{self.partitioned}{properties} AS {query}")

    def _frame(self) -> None:
        frame = self.spark.sql(self.rows()).localCheckpoint()
        writer = frame.write.format("delta").mode("overwrite")
        self.log.append("saveAsTable overwrite")
        (writer.partitionBy("part") if self.partitioned else writer).saveAsTable("t")

    def _schema(self) -> None:
        frame = self.spark.sql(f"SELECT k, part, w, v, k * 2 AS more FROM ({self.rows()})").localCheckpoint()
        writer = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        self.log.append("saveAsTable overwriteSchema")
        (writer.partitionBy("part") if self.partitioned else writer).saveAsTable("t")

    def _reload(self) -> None:
        self.spark.sql(self.rows()).localCheckpoint().createOrReplaceTempView("loaded")
        self.run("TRUNCATE TABLE t" if self.rng.random() < 0.5 else "DELETE FROM t")
        self.run("INSERT INTO t SELECT * FROM loaded")

    def _rewrite(self) -> None:
        self.log.append("rewrite with dataChange = false")
        frame = self.spark.sql("SELECT * FROM t").repartition(2)
        frame.write.format("delta").mode("overwrite").option("dataChange", "false").saveAsTable("t")

    def _clone(self) -> None:
        self.spark.sql(self.rows()).localCheckpoint().createOrReplaceTempView("loaded")
        self.run(
            f"CREATE OR REPLACE TABLE origin USING delta{self.partitioned} {self.properties} AS SELECT * FROM loaded"
        )
        self.run("TRUNCATE TABLE t")
        self.run("CREATE OR REPLACE TABLE t SHALLOW CLONE origin")

    def _restore(self) -> None:
        version = self.rng.choice(sorted(self.snapshots))
        try:
            self.run(f"RESTORE TABLE t TO VERSION AS OF {version}")
        except Exception as e:  # Delta refuses to restore across some changes of its features
            self.log.append(f"refused: {str(e)[:80]}")
        self.restored |= set(range(max(self.snapshots) + 1, self.newest() + 1))

    def _optimize(self) -> None:
        self.run("OPTIMIZE t")

    def _untrack(self) -> None:
        self.is_tracked = not self.is_tracked
        self.run(f"ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = '{str(self.is_tracked).lower()}')")

    def _widen(self) -> None:
        if "more" not in self.columns[max(self.columns)]:
            self.run("ALTER TABLE t ADD COLUMN more INT")


def filled(spark: SparkSession, schema: str, seed: int) -> Rebuilt:
    """The table with some rows, in a schema of its own. `schema`: what the schema's name begins with."""
    fresh_schema(spark, schema)
    table = Rebuilt(spark, random.Random(seed))
    for _ in range(3):
        table.change(("insert",))
    return table


def net(before: dict[Key, Values], after: dict[Key, Values]) -> dict[Key, tuple[str, Values | None, Values | None]]:
    """The changes by key: what happened, the old values and the new ones."""
    found: dict[Key, tuple[str, Values | None, Values | None]] = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old != new:
            found[key] = ("INSERT" if old is None else "DELETE" if new is None else "UPDATE", old, new)
    return found
