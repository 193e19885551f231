"""Records and 6-tuples of commits, proved by replay: a store that applies the tuples equals the table."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.keys import KeyColumn, PrimaryKey
from streamql.features.tablestore.formats.records import (
    Commit,
    Image,
    Key,
    RecordType,
    RowChange,
    records_of,
    sort_key,
    tuple_columns,
    tuples_of,
)
from streamql.features.tablestore.formats.sequence import Position, parse_sequence
from streamql.features.tablestore.jobs.shards import ShardTree

TWO = ("pkName1", "pkName2")


def one_shard(key: Key) -> str:
    return "0000-0000"


def commit(time_ms: int, version: int = 1, shard_of: Callable[[Key], str] = one_shard) -> Commit:
    return Commit(version, time_ms, TWO, shard_of)


def row(key: str, **values: Any) -> Image:
    return Image((f"pk1_{key}", f"pk2_{key}"), values)


def exported(*commits: tuple[int, RowChange], sequence_info: bool = False) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for version, (time_ms, change) in enumerate(commits):
        for record in records_of([change], commit(time_ms, version)):
            found += tuples_of(record, sequence_info=sequence_info)
    return found


def test_the_tuples_of_the_page_that_delta_can_express() -> None:
    """All but DO: a column of a Delta table has no versions that could be deleted one by one."""
    first = row("V1", col_a=None, col_b=None)
    found = exported(
        (1441803688001, RowChange(first, row("V1", col_a="col_val1", col_b=None))),
        (1441803688002, RowChange(row("V1", col_a="col_val1", col_b=None), row("V1", col_a="col_val2", col_b=None))),
        (
            1441803688003,
            RowChange(row("V1", col_a="col_val2", col_b=None), row("V1", col_a="col_val2", col_b="col_val3")),
        ),
        (1441803688004, RowChange(row("V2", col_a=None, col_b="x"), row("V2", col_a=None, col_b=None))),
        (1441803688005, RowChange(None, row("V3", col_a="col_val1", col_b=None))),
    )
    assert found == [
        ("pk1_V1", "pk2_V1", "col_a", 1441803688001, "col_val1", "U"),
        ("pk1_V1", "pk2_V1", "col_a", 1441803688002, "col_val2", "U"),
        ("pk1_V1", "pk2_V1", "col_b", 1441803688003, "col_val3", "U"),
        ("pk1_V2", "pk2_V2", "col_b", None, None, "DA"),
        ("pk1_V3", "pk2_V3", None, None, None, "DR"),
        ("pk1_V3", "pk2_V3", "col_a", 1441803688005, "col_val1", "U"),
    ]


def test_sequence_info_numbers_the_tuples_of_a_record() -> None:
    found = exported((7, RowChange(None, row("V", a=1, b=None, c=2))), sequence_info=True)
    assert [t[-1] for t in found] == [
        f"0000000000_00000000000000007000_0000000000_0000-0000:000000000{n}" for n in range(3)
    ]
    assert [t[-2] for t in found] == ["DR", "U", "U"]


def types(*changes: RowChange) -> list[tuple[RecordType, Key, list[tuple[str, str | None]]]]:
    return [(r.type, r.key, [(c.column, c.value) for c in r.cells]) for r in records_of(changes, commit(1))]


def test_a_changed_key_is_a_row_that_went_and_one_that_came() -> None:
    assert types(RowChange(row("A", a=1), row("B", a=1))) == [
        (RecordType.DELETE, ("pk1_A", "pk2_A"), []),
        (RecordType.PUT, ("pk1_B", "pk2_B"), [("a", "1")]),
    ]


def test_exchanged_keys_put_both_rows() -> None:
    found = types(RowChange(row("A", a=1), row("B", a=1)), RowChange(row("B", a=2), row("A", a=2)))
    assert found == [
        (RecordType.PUT, ("pk1_A", "pk2_A"), [("a", "2")]),
        (RecordType.PUT, ("pk1_B", "pk2_B"), [("a", "1")]),
    ]


def test_a_row_deleted_and_inserted_is_put_even_if_it_is_the_same() -> None:
    found = types(RowChange(row("A", a=1, b=2), None), RowChange(None, row("A", a=1, b=None)))
    assert found == [(RecordType.PUT, ("pk1_A", "pk2_A"), [("a", "1")])]


def test_an_update_of_nothing_is_no_record() -> None:
    nan = float("nan")
    assert types(RowChange(row("A", a=None, b=nan, c=0.0), row("A", a=None, b=float("nan"), c=-0.0))) == []
    (found,) = types(RowChange(row("A", a=None, b=nan), row("A", a=1, b=None)))
    assert found == (RecordType.UPDATE, ("pk1_A", "pk2_A"), [("a", "1"), ("b", None)])


def test_a_column_that_came_since_was_null() -> None:
    (found,) = types(RowChange(row("A", a=1), row("A", a=1, new="n")))
    assert found == (RecordType.UPDATE, ("pk1_A", "pk2_A"), [("new", "n")])
    assert types(RowChange(row("A", a=1), row("A", a=1, new=None))) == []


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ([RowChange(None, row("A", a=1)), RowChange(None, row("A", a=1))], "(pkName1 = pk1_A, pkName2 = pk2_A)"),
        ([RowChange(row("A", a=1), None), RowChange(row("A", a=2), None)], "(pkName1 = pk1_A, pkName2 = pk2_A)"),
        ([RowChange(row("B", a=1), row("A", a=1)), RowChange(row("A", a=1), row("A", a=2))], "pk1_A"),
        ([RowChange(None, Image(("x", None), {"a": 1}))], "(pkName1 = x, pkName2 = NULL)"),
    ],
)
def test_broken_keys_are_refused_by_name(changes: list[RowChange], key: str) -> None:
    with pytest.raises(StreamqlError) as e:
        records_of(changes, commit(1, version=9))
    assert e.value.code == "PRIMARY_KEY_VIOLATED"
    assert e.value.sqlstate == "23505"
    assert "version 9" in e.value.message
    assert key in e.value.message


def test_columns_of_tuples_are_distinct() -> None:
    assert tuple_columns(["id"], sequence_info=True, table="t")[-1] == "sequenceInfo"
    assert tuple_columns(["sequenceinfo"], sequence_info=False, table="t")[0] == "sequenceinfo"
    for name, is_on in (("TIMESTAMP", False), ("sequenceinfo", True)):
        with pytest.raises(StreamqlError, match=name) as e:
            tuple_columns(["id", name], sequence_info=is_on, table="t")
        assert e.value.code == "RESERVED_COLUMN_NAME"


Rows = dict[int, tuple[int, dict[str, int | None]]]
ID = PrimaryKey((KeyColumn("id", "long"),))


@dataclass
class Table:
    """Rows by their ids, as (key, values); and the records of its commits."""

    tree: ShardTree = field(default_factory=lambda: ShardTree("t", 0).resharded(0, ID, 2))
    rows: Rows = field(default_factory=dict)
    ids: int = 0
    version: int = -1
    tuples: list[tuple[Any, ...]] = field(default_factory=list)

    def apply(self, steps: Iterable[tuple[str, int, int, dict[str, int | None]]]) -> None:
        """One commit; steps that would break the key are left out."""
        self.version += 1
        before = dict(self.rows)
        after = dict(self.rows)
        for what, key, other, values in steps:
            row_id = next((i for i, (k, _) in after.items() if k == key), None)
            if what == "insert" and row_id is None:
                self.ids += 1
                after[self.ids] = (key, {"a": None, "b": None} | values)
            elif what == "reshard":
                self.tree = self.tree.resharded(self.version, ID, other + 1)
            elif row_id is None:
                continue
            elif what == "delete":
                del after[row_id]
            elif what == "update":
                after[row_id] = (key, after[row_id][1] | values)
            elif what == "rekey":
                taken = next((i for i, (k, _) in after.items() if k == other), None)
                if taken is not None:
                    after[taken] = (key, after[taken][1])
                after[row_id] = (other, after[row_id][1])
        self.rows = after
        changes = [
            RowChange(_image(before.get(i)), _image(after.get(i)))
            for i in sorted(before.keys() | after.keys(), key=str)
            if before.get(i) != after.get(i)
        ]
        made = Commit(self.version, 1000 + self.version, ["id"], lambda k: self.tree.shard_of(k, self.version))
        for record in records_of(changes, made):
            self.tuples += tuples_of(record, sequence_info=True)


def _image(found: tuple[int, dict[str, int | None]] | None) -> Image | None:
    return None if found is None else Image((found[0],), found[1])


def replayed(tuples: Iterable[tuple[Any, ...]]) -> dict[int, dict[str, str]]:
    """A store of cells that applies tuples as DataX's page defines them."""
    store: dict[int, dict[str, str]] = {}
    for key, column, _, value, op, _ in tuples:
        if op == "DR":
            store.pop(key, None)
        elif op == "U":
            store.setdefault(key, {})[column] = value
        else:
            assert op == "DA"
            store.get(key, {}).pop(column, None)
    return {key: cells for key, cells in store.items() if cells}


VALUES = st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 2), max_size=2)
STEPS = st.tuples(
    st.sampled_from(["insert", "insert", "update", "update", "rekey", "delete", "reshard"]),
    st.integers(0, 3),
    st.integers(0, 3),
    VALUES,
)


@given(st.lists(st.lists(STEPS, max_size=5), max_size=8), st.randoms(use_true_random=False))
def test_replay_equals_the_table_in_any_order_of_shards(commits: list[list[Any]], shuffle: random.Random) -> None:
    table = Table()
    for steps in commits:
        table.apply(steps)
    expected = {
        key: cells
        for key, values in table.rows.values()
        if (cells := {c: str(v) for c, v in values.items() if v is not None})
    }
    by_shard: dict[str, list[tuple[Any, ...]]] = {}
    for found in table.tuples:
        by_shard.setdefault(parse_sequence(found[-1]).shard, []).append(found)
    shards = table.tree.shards()
    order: list[tuple[Any, ...]] = []
    read: set[str] = set()
    while len(read) < len(shards):
        ready = [s for s in shards if s.id not in read and read.issuperset(s.parents)]
        chosen = shuffle.choice(ready)
        read.add(chosen.id)
        order += by_shard.pop(chosen.id, [])
    assert not by_shard
    assert replayed(order) == expected
    assert replayed(sorted(table.tuples, key=lambda t: str(t[-1]))) == expected


@given(st.lists(st.lists(STEPS, max_size=5), max_size=6))
def test_sequence_info_is_unique_and_sorts_in_each_shard(commits: list[list[Any]]) -> None:
    table = Table()
    for steps in commits:
        table.apply(steps)
    texts = [t[-1] for t in table.tuples]
    assert len(set(texts)) == len(texts)
    by_shard: dict[str, list[str]] = {}
    rows: dict[tuple[str, int], set[int]] = {}
    for text in texts:
        info = parse_sequence(text)
        by_shard.setdefault(info.shard, []).append(text)
        rows.setdefault((info.shard, info.position.version), set()).add(info.position.row)
    assert all(of == sorted(of) for of in by_shard.values())
    assert all(numbers == set(range(len(numbers))) for numbers in rows.values())


def test_keys_sort_as_spark_sorts_them() -> None:
    assert sort_key(("\ue000",)) < sort_key(
        ("\U0001f600",)
    )  # in UTF-16, as Java compares, they sort the other way round
    found = records_of([RowChange(None, Image((k, 1), {})) for k in ("b", "B", "a")], Commit(3, 1, TWO, one_shard))
    assert [(r.key[0], r.position) for r in found] == [
        ("B", Position(3, 0)),
        ("a", Position(3, 1)),
        ("b", Position(3, 2)),
    ]
