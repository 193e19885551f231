"""A seeded generator of table histories: the shape of a table, and operations on it. Same seed, same history."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.lines import HAS_BY_NAME

from .columns import COLUMN_TYPES
from .model import Column, RowIds, TableState
from .operations import (
    Alter,
    Assign,
    Delete,
    Insert,
    Maintain,
    Merge,
    Moment,
    Operation,
    Overwrite,
    Restore,
    Source,
    Update,
    Where,
)

STEPS_MIN, STEPS_MAX = 14, 16

BASE_COLUMNS = (
    Column("k", "k", "bigint", fixed=True),
    Column("p", "p", "int", fixed=True),
    Column("n", "n", "bigint", fixed=True),
)


FEATURES_OF_TYPES = ("delta.feature.timestampNtz", "delta.feature.variantType")
"""What ADD COLUMN of some types needs and does not switch on itself."""


@dataclass(frozen=True)
class Shape:
    """How the table is made, and how big a usual insert is."""

    rows: int
    layout: str = ""  # "", "PARTITIONED BY (p)" or "CLUSTER BY (k)"
    mapped: bool = False
    deletion_vectors: bool = True
    widening: bool = False
    extras: tuple[Column, ...] = ()
    check: bool = False
    write_conf: tuple[tuple[str, str], ...] = ()
    files_max: int = 3

    @property
    def columns(self) -> tuple[Column, ...]:
        return BASE_COLUMNS + self.extras

    def create(self, table: str) -> list[str]:
        properties = {
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.enableDeletionVectors": str(self.deletion_vectors).lower(),
            **dict.fromkeys(FEATURES_OF_TYPES, "supported"),
            **({"delta.columnMapping.mode": "name"} if self.mapped else {}),
            **({"delta.enableTypeWidening": "true"} if self.widening else {}),
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        columns = ", ".join(c.ddl for c in self.columns)
        texts = [f"CREATE TABLE {table} ({columns}) USING DELTA {self.layout} TBLPROPERTIES ({listed})"]
        if self.check:
            texts.append(f"ALTER TABLE {table} ADD CONSTRAINT keys_not_negative CHECK (k >= 0)")
        return texts


@dataclass(frozen=True)
class History:
    """A seed's table and operations, and the state each step leaves by the plain-Python model. Step 0 is the CREATE."""

    seed: int
    shape: Shape
    operations: tuple[Operation, ...]
    states: tuple[TableState, ...] = field(repr=False)


SMALL_ROW_GROUPS = (
    ("parquet.block.size", "2048"),
    ("parquet.block.size.row.check.min", "20"),
    ("parquet.page.size.row.check.min", "20"),
)
SPLIT_FILES = (("spark.sql.files.maxPartitionBytes", "16384"),)


def _shape(rng: random.Random, profile: int) -> Shape:
    names = list(COLUMN_TYPES)
    rng.shuffle(names)
    extras = tuple(Column(f"c{i}", f"c{i}", name) for i, name in enumerate(names[: rng.randint(5, 8)]))
    small = Shape(rows=rng.randint(6, 40), extras=extras)
    match profile % 6:
        case 0:
            return replace(small, layout="PARTITIONED BY (p)")
        case 1:  # several row groups in a file
            return replace(small, rows=400, layout="CLUSTER BY (k)", extras=extras[:4], write_conf=SMALL_ROW_GROUPS)
        case 2:
            narrow = ("smallint", "int", "float", "decimal")
            widened = tuple(Column(f"w{i}", f"w{i}", name) for i, name in enumerate(narrow))
            return replace(small, mapped=True, widening=True, extras=extras[:3] + widened)
        case 3:
            few = replace(small, rows=250, deletion_vectors=False, extras=extras[:3], files_max=6)
            return replace(few, layout="PARTITIONED BY (p)", write_conf=SMALL_ROW_GROUPS)
        case 4:
            computed = (Column("g", "g", "int", "CAST(k % 10 AS INT)"), Column("i", "i", "bigint", "identity"))
            return replace(small, extras=(*computed, *extras[:4]), check=True, widening=True)
        case _:
            layout = rng.choice(("", "CLUSTER BY (k, p)", "PARTITIONED BY (p)"))
            mapped = replace(small, rows=rng.choice((25, 250)), mapped=True, layout=layout, files_max=5)
            return replace(mapped, deletion_vectors=rng.random() < 0.5, write_conf=SMALL_ROW_GROUPS)


class _Writer:
    """Makes operations that fit the table as it is now."""

    def __init__(self, rng: random.Random, shape: Shape) -> None:
        self.rng, self.shape, self.made = rng, shape, 0

    def where(self, state: TableState) -> Where:
        keys = sorted(k for row in state.rows.values() if isinstance(k := row.values["k"], int)) or [0]
        first = self.rng.choice(keys)
        match self.rng.randrange(6):
            case 0:
                return Where(first, first + 1)
            case 1:
                return Where(first, first + max(2, len(keys) // 5))
            case 2:
                modulus = self.rng.choice((2, 3, 7))
                return Where(modulus=modulus, remainder=self.rng.randrange(modulus))
            case 3:
                part = self.rng.randrange(3)
                return Where(part, part + 1, column="p")
            case 4:
                return Where()
            case _:
                return Where(first, first + len(keys), modulus=11, remainder=first % 11)

    def source(self, state: TableState, share: float = 1.0) -> Source:
        top = max((k for row in state.rows.values() if isinstance(k := row.values["k"], int)), default=0)
        start = top + 1 if self.rng.random() < 0.7 else self.rng.randint(0, top)
        count = max(1, int(self.shape.rows * share * self.rng.uniform(0.3, 1.2)))
        return Source(start, count, self.rng.randrange(100), self.rng.choice((1, 1, 2, self.shape.files_max)))

    def assign(self, state: TableState, *, sourced: bool = False) -> Assign:
        extra = [c.key for c in state.extra]
        chosen = self.rng.sample(extra, min(len(extra), self.rng.randint(1, 3)))
        if sourced:
            return Assign(from_source=tuple(chosen), bump=(("n", 1),) if self.rng.random() < 0.4 or not chosen else ())
        match self.rng.randrange(5):
            case 0:
                return Assign(bump=(("n", 1),))
            case 1:
                return Assign(partition=self.rng.randrange(3), same=("n",))
            case 2:
                return Assign(bump=(("k", 1000),), same=tuple(chosen))
            case _:
                return Assign(pick=tuple((key, self.rng.randrange(9)) for key in chosen), same=("p",))

    def insert(self, state: TableState) -> list[Operation]:
        return [Insert(self.source(state))]

    def update(self, state: TableState) -> list[Operation]:
        return [Update(self.where(state), self.assign(state))]

    def update_in_vain(self, state: TableState) -> list[Operation]:
        return [Update(self.where(state), Assign(same=("n", *[c.key for c in state.extra[:2]])), "UPDATE v = v")]

    def there_and_back(self, state: TableState) -> list[Operation]:
        where = self.where(state)
        return [
            Update(where, Assign(bump=(("n", 5),)), "UPDATE A->B"),
            Update(where, Assign(bump=(("n", -5),)), "UPDATE B->A"),
        ]

    def delete(self, state: TableState) -> list[Operation]:
        where = self.where(state)
        return [Delete(replace(where, modulus=max(where.modulus, 2)) if where == Where() else where)]

    def delete_files(self, state: TableState) -> list[Operation]:
        part = self.rng.randrange(3)
        return [Delete(Where(part, part + 1, column="p"), "DELETE partition")]

    def delete_all(self, state: TableState) -> list[Operation]:
        return [
            self.rng.choice((Delete(None, "DELETE all"), Maintain("TRUNCATE TABLE {table}", "TRUNCATE", empties=True)))
        ]

    def merge(self, state: TableState) -> list[Operation]:
        source = replace(self.source(state, 0.5), start=self.where(state).lo, stride=self.rng.choice((1, 1, 2, 5)))
        parts = [self.rng.random() < 0.55 for _ in range(5)]
        update = self.assign(state, sourced=self.rng.random() < 0.7) if parts[1] or not any(parts) else None
        return [
            Merge(
                source,
                matched_delete=self.where(state) if parts[0] else None,
                matched_update=update,
                insert_where=self.rng.choice((Where(), Where(modulus=2))) if parts[2] else None,
                unmatched_delete=Where(modulus=13, remainder=5) if parts[3] else None,
                unmatched_update=(self.where(state), self.assign(state)) if parts[4] else None,
            )
        ]

    def merge_in_vain(self, state: TableState) -> list[Operation]:
        source = replace(self.source(state, 0.5), start=self.where(state).lo)
        return [Merge(source, matched_update=Assign(same=("n", "p")), label="MERGE equal values")]

    def overwrite(self, state: TableState) -> list[Operation]:
        return [Overwrite(self.source(state))]

    def replace_where(self, state: TableState) -> list[Operation]:
        if not HAS_BY_NAME and state.writable != state.columns:
            return self.overwrite(state)
        part = self.rng.randrange(3)
        source = replace(self.source(state, 0.5), partition=part)
        return [Overwrite(source, Where(part, part + 1, column="p"), "REPLACE WHERE")]

    def optimize(self, state: TableState) -> list[Operation]:
        return [Maintain("OPTIMIZE {table}" + (" FULL" if "CLUSTER" in self.shape.layout else ""), "OPTIMIZE")]

    def zorder(self, state: TableState) -> list[Operation]:
        if "CLUSTER" in self.shape.layout:
            return self.optimize(state)
        return [Maintain("OPTIMIZE {table} ZORDER BY (n, k)", "ZORDER")]

    def reorg(self, state: TableState) -> list[Operation]:
        return [Maintain("REORG TABLE {table} APPLY (PURGE)", "REORG")]

    def toggle_vectors(self, state: TableState) -> list[Operation]:
        on = not state.deletion_vectors
        text = f"ALTER TABLE {{table}} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(on).lower()}')"
        return [Maintain(text, "SET deletion vectors", deletion_vectors=on)]

    def alter(self, state: TableState) -> list[Operation]:
        self.made += 1
        extra = list(state.extra)
        add = Alter(
            "ADD", f"a{self.made}", Column(f"a{self.made}", f"a{self.made}", self.rng.choice(list(COLUMN_TYPES)))
        )
        actions: list[Alter] = [add]
        if self.shape.mapped and len(extra) > 2:
            old = self.rng.choice(extra)
            actions += [Alter("DROP", old.key), Alter("RENAME", old.key, replace(old, name=f"{old.name}_{self.made}"))]
            reused = Column(f"a{self.made}", old.name, old.type_name)  # DROP, then ADD under the same name
            actions += [Alter("DROP", old.key), Alter("ADD", reused.key, replace(reused, name=f"again_{self.made}"))]
        wideable = [c for c in extra if c.type.wider]
        if self.shape.widening and wideable:
            old = self.rng.choice(wideable)
            actions += [Alter("WIDEN", old.key, replace(old, type_name=old.type.wider or ""))] * 3
        return [self.rng.choice(actions)]


def _restore(rng: random.Random, states: list[TableState]) -> list[Operation]:
    candidates = range(1, len(states) - 1) or range(1)
    return [Restore(rng.choice(candidates))]


def _deck(writer: _Writer) -> list[Callable[[TableState], list[Operation]]]:
    """The operations a history draws from, often ones several times."""
    w = writer
    often = [w.insert, w.update, w.delete, w.merge] * 4
    some = [w.optimize, w.replace_where, w.alter, w.toggle_vectors] * 2
    once = [w.update_in_vain, w.there_and_back, w.merge_in_vain, w.delete_files, w.delete_all, w.overwrite, w.zorder]
    return [*often, *some, *once, w.reorg, w.alter]


def make_history(seed: int, profile: int | None = None) -> History:
    """The history of a seed: a CREATE, an insert of several files, then operations with two RESTOREs among them."""
    rng = random.Random(seed)
    shape = _shape(rng, seed if profile is None else profile)
    writer, ids = _Writer(rng, shape), RowIds()
    states = [TableState(shape.columns, deletion_vectors=shape.deletion_vectors)]
    operations: list[Operation] = []

    def run(ops: list[Operation]) -> None:
        for op in ops:
            states.append(op.apply(states[-1], Moment(len(states), ids, tuple(states))))
            operations.append(op)

    run([Insert(replace(writer.source(states[-1]), start=0, files=shape.files_max, count=shape.rows))])
    deck = _deck(writer)
    rng.shuffle(deck)
    steps = rng.randint(STEPS_MIN, STEPS_MAX)
    restore_at = set(rng.sample(range(4, steps), 2))
    while len(operations) < steps:
        if len(operations) in restore_at:
            restore_at.discard(len(operations))
            run(_restore(rng, states))
        elif not states[-1].rows:
            run(writer.insert(states[-1]))
        else:
            run(deck.pop()(states[-1]))
    return History(seed, shape, tuple(operations), tuple(states))
