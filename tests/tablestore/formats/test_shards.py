"""Shard trees: splits, merges, and what they keep through resharding, RESTORE, replaced tables and trimmed logs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.keys import KeyColumn, PrimaryKey
from streamql.features.tablestore.jobs import shards
from streamql.features.tablestore.jobs.shards import (
    Followed,
    Generation,
    ShardTree,
    follow,
    follow_on,
    needs_writing,
    parse_tree,
    recorded,
    shard_count,
)

ID = PrimaryKey((KeyColumn("id", "long"),))
REGION = PrimaryKey((KeyColumn("region", "string"), KeyColumn("id", "long")))


def tree(*counts: int, key: PrimaryKey = ID) -> ShardTree:
    """A tree whose generations begin at versions 1, 11, 21 …"""
    made = ShardTree("t", 1)
    for i, count in enumerate(counts):
        made = made.resharded(10 * i + 1, key, count)
    return made


def relatives(of: ShardTree, shard_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    shard = of.shard(shard_id)
    return shard.parents, shard.siblings


def test_a_split_has_one_parent_each_and_a_merge_several() -> None:
    assert relatives(tree(2, 4), "0001-0003") == (("0000-0001",), ("0001-0001",))
    assert relatives(tree(4, 2), "0001-0001") == (("0000-0001", "0000-0003"), ())
    assert relatives(tree(2, 3), "0001-0002") == (("0000-0000", "0000-0001"), ("0001-0000", "0001-0001"))
    assert relatives(tree(4, 6), "0001-0005") == (("0000-0001", "0000-0003"), ("0001-0001", "0001-0003"))
    assert relatives(tree(3), "0000-0002") == ((), ())


def test_shards_close_before_the_version_that_reshards() -> None:
    made = tree(1, 2)
    assert [(s.id, s.first, s.last) for s in made.shards()] == [
        ("0000-0000", 1, 10),
        ("0001-0000", 11, None),
        ("0001-0001", 11, None),
    ]
    assert made.generation_at(10).number == 0
    assert made.generation_at(11).number == 1
    assert [(g.number, a, b) for g, a, b in made.ranges(5, 15)] == [(0, 5, 10), (1, 11, 15)]
    assert [(g.number, a, b) for g, a, b in made.ranges(11, 15)] == [(1, 11, 15)]
    with pytest.raises(ValueError, match="no version 0"):
        made.generation_at(0)


def test_expired_shards_are_no_parents() -> None:
    made = tree(1, 2, 4)
    assert made.readable_shards(9) == made.shards()
    found = made.readable_shards(10)
    assert [s.id for s in found] == ["0001-0000", "0001-0001", "0002-0000", "0002-0001", "0002-0002", "0002-0003"]
    assert [s.parents for s in found[:3]] == [(), (), ("0001-0000",)]


KEYS = st.tuples(st.text(max_size=3), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from([ID, REGION])), min_size=1, max_size=5), KEYS)
def test_a_key_moves_from_parent_to_child(steps: list[tuple[int, PrimaryKey]], key: tuple[str, int]) -> None:
    made = ShardTree("t", 1)
    for i, (count, columns) in enumerate(steps):
        made = made.resharded(10 * i + 1, columns, count)
    homes = []
    for generation in made.generations:
        values = [key[1]] if generation.key == ("id",) else list(key)
        homes.append(made.shard_of(values, generation.first))
    for before, after in pairwise(homes):
        assert before in made.shard(after).parents
    assert parse_tree(made.to_text(9), "t") == made
    for shard in made.shards():
        assert all(shard.id in made.shard(other).siblings for other in shard.siblings)
        assert all(set(made.shard(other).parents) == set(shard.parents) for other in shard.siblings)


def test_a_widened_column_stays_where_it_is_and_another_key_reshards() -> None:
    wide = PrimaryKey((KeyColumn("ID", "decimal(20,0)"),))
    made = tree(2)
    assert made.resharded(11, wide, 2) is made
    assert made.resharded(11, wide, 4).generations[1].hashed_types == ("decimal(20,0)",)
    assert made.resharded(11, REGION, 2).shard("0001-0000").parents == ("0000-0000", "0000-0001")


def test_a_generation_without_records_is_replaced() -> None:
    made = ShardTree("t", 6).resharded(5, ID, 2).resharded(6, ID, 3)
    assert made.generations == (Generation(0, 6, 3, ("id",), ("bigint",)),)


def test_unknown_shards_and_bad_counts_are_refused() -> None:
    with pytest.raises(StreamqlError, match="no shard 7") as e:
        tree(2).shard("7")
    assert e.value.code == "SHARD_NOT_FOUND"
    assert shard_count({}, "t") == 1
    assert shard_count({"tablestore.shard_count": " 1024 "}, "t") == 1024
    for text in ("0", "1025", "-1", "two", "", "1.5", "٣", "9" * 5000):
        with pytest.raises(StreamqlError, match="whole number from 1 to 1024") as e:
            shard_count({"tablestore.shard_count": text}, "t")
        assert e.value.code == "INVALID_PROPERTY"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(format=2),
        lambda d: d.pop("first"),
        lambda d: d["generations"][0].update(count=0),
        lambda d: d["generations"][0].update(first=7),
        lambda d: d["generations"].reverse(),
        lambda d: d.update(generations=7),
    ],
)
def test_damaged_properties_are_refused(change: Any) -> None:
    data = json.loads(tree(2, 4).to_text(30))
    change(data)
    with pytest.raises(StreamqlError, match=r"tablestore\.shards of t is not one") as e:
        parse_tree(json.dumps(data), "t")
    assert e.value.code == "INVALID_PROPERTY"
    with pytest.raises(StreamqlError):
        parse_tree("{", "t")


@dataclass
class Table:
    """A Delta table, as the metadata of each version."""

    versions: list[dict[str, Any]] = field(default_factory=list)
    tables: int = 0

    def set(self, **properties: str | None) -> None:
        metadata = self.versions[-1]
        names = {
            "tracking": "delta.enableRowTracking",
            "key": "tablestore.primary_key",
            "count": "tablestore.shard_count",
        }
        named = {names.get(name, name): value for name, value in properties.items()}
        kept = {k: v for k, v in (metadata["configuration"] | named).items() if v is not None}
        self.versions.append(metadata | {"configuration": kept})

    def replace(self, **properties: str) -> None:
        self.tables += 1
        columns = [
            {"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("id", "long"), ("region", "string"))
        ]
        metadata = {"id": f"t{self.tables}", "schemaString": json.dumps({"fields": columns}), "configuration": {}}
        self.versions.append(metadata)
        if properties:
            self.set(**properties)
            del self.versions[-2]

    def write(self) -> None:
        """What a process does that uses the stream: it writes the property if that is not the tree."""
        now = self.read()
        if now is not None and needs_writing(now, self.versions[-1], "t"):
            self.set(**{shards.SHARDS: now.to_text(len(self.versions))})

    def read(self, first_kept: int = 0) -> ShardTree | None:
        """The tree, from the version on at which the newest property was written, or from the first version that the log has."""
        known = recorded(self.versions[-1], "t")
        start = max(first_kept, known.written if known is not None and known.written is not None else 0)
        return self.follow(start)

    def follow(self, start: int) -> ShardTree | None:
        return follow(start, self.versions[start], self.changes(start), "t")

    def changes(self, after: int) -> list[tuple[int, dict[str, Any]]]:
        return [(v, m) for v, m in enumerate(self.versions) if v > after and m != self.versions[v - 1]]


STEPS = st.one_of(
    st.tuples(st.just("count"), st.integers(1, 4)),
    st.tuples(st.just("key"), st.sampled_from(["id", "region,id", "nothing", None])),
    st.tuples(st.just("tracking"), st.sampled_from(["true", "true", "false"])),
    st.tuples(st.just("restore"), st.integers(0, 30)),
    st.tuples(st.just("replace"), st.just(0)),
    st.tuples(st.sampled_from(["commit", "write", "write"]), st.just(0)),
)


def play(steps: Sequence[tuple[str, Any]]) -> Table:
    table = Table()
    table.replace(tracking="true", key="id", count="2")
    for what, argument in steps:
        if what == "restore":
            table.versions.append(table.versions[argument % len(table.versions)])
        elif what == "replace":
            table.replace(tracking="true", key="id")
        elif what == "commit":
            table.versions.append(table.versions[-1])
        elif what == "write":
            table.write()
        else:
            table.set(**{what: None if argument is None else str(argument)})
    return table


@given(st.lists(STEPS, max_size=14))
def test_the_property_and_the_commits_since_tell_what_all_commits_tell(steps: list[tuple[str, Any]]) -> None:
    table = play(steps)
    table.write()
    whole = table.follow(0)
    assert table.read() == whole
    if whole is None:
        return
    assert not needs_writing(whole, table.versions[-1], "t")
    assert table.read(first_kept=len(table.versions) - 1) == whole  # log cleanup took all else
    configuration = table.versions[-1]["configuration"]
    if whole.generations and configuration.get("tablestore.primary_key") in ("id", "region,id"):
        assert whole.generations[-1].count == int(configuration.get("tablestore.shard_count", 1))
        assert ",".join(whole.generations[-1].key) == configuration["tablestore.primary_key"]


@given(st.lists(STEPS, max_size=14), st.integers(0, 30))
def test_a_tree_that_is_known_is_followed_on_to_what_all_commits_tell(steps: list[tuple[str, Any]], at: int) -> None:
    table = play(steps)
    version = at % len(table.versions)
    then = Table(table.versions[: version + 1]).follow(0)
    if then is not None:
        known = Followed(version, parse_tree(then.to_text(version), "t"))
        assert follow_on(known, table.changes(version), table.versions[-1], "t") == table.follow(0)


@given(st.lists(STEPS, max_size=14), st.integers(0, 30), st.integers(1, 4))
def test_history_is_never_rewritten(steps: list[tuple[str, Any]], back: int, more: int) -> None:
    """What a stream said of a version's shards it says for as long as it is the same stream: RESTORE reopens no shard."""
    table = play(steps)
    before, known = table.read(), len(table.versions)
    table.versions.append(table.versions[back % known])
    table.set(count=str(more))
    table.write()
    after = table.read()
    if before is not None and before.generations and after is not None and after.stream_id == before.stream_id:
        for version in range(before.first, known):
            assert after.generation_at(version) == before.generation_at(version)


def test_restore_over_a_reshard_makes_a_third_generation_and_the_property_is_written_anew() -> None:
    table = play([("write", 0), ("count", 4), ("write", 0)])
    restored = 1
    assert recorded(table.versions[-1], "t") == table.read()
    table.versions.append(table.versions[restored])
    version = len(table.versions) - 1
    found = table.read()
    assert found is not None
    assert [(g.first, g.count) for g in found.generations] == [(0, 2), (2, 4), (version, 2)]
    assert needs_writing(found, table.versions[-1], "t")
    table.write()
    assert recorded(table.versions[-1], "t") == found


def test_streams_have_another_id_after_tracking_was_off_or_the_table_was_replaced() -> None:
    table = play([("write", 0)])
    ids = [table.read()]
    table.set(tracking="false")
    assert table.read() is None
    table.set(tracking="true")
    ids.append(table.read())
    table.replace(tracking="true")
    ids.append(table.read())
    assert [i.stream_id for i in ids if i is not None] == ["t1_0", "t1_4", "t2_4"]


def test_a_copy_of_a_table_does_not_take_its_shards() -> None:
    table = play([("count", 4), ("write", 0)])
    copy = table.versions[-1] | {"id": "copy"}
    assert recorded(copy, "t") is None
    found = follow(0, copy, [], "t")
    assert found is not None
    assert (found.stream_id, len(found.generations)) == ("copy_0", 1)


def test_what_cannot_be_read_is_refused_at_the_end_and_ignored_before() -> None:
    table = play([("count", "many")])
    with pytest.raises(StreamqlError, match="found many"):
        table.read()
    table.set(count="3")
    found = table.read()
    assert found is not None
    assert [g.count for g in found.generations] == [2, 3]
    table.set(**{shards.SHARDS: "{}"})
    with pytest.raises(StreamqlError, match="is not one that"):
        table.follow(0)


def test_a_table_without_a_key_has_no_generations_until_it_declares_one() -> None:
    table = Table()
    table.replace(tracking="true")
    assert table.read() == ShardTree("t1", 0)
    table.versions.append(table.versions[-1])
    table.set(key="id")
    found = table.read()
    assert found is not None
    assert [(g.first, g.count) for g in found.generations] == [(0, 1)]
