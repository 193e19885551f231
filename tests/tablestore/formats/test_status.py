"""The status table: where jobs begin, what they repeat, and who runs them. Proved on random sequences of jobs over a growing log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.jobs.shards import Followed, Generation, ShardTree
from streamql.features.tablestore.jobs.status import (
    COLUMNS,
    FILES_MAX,
    SMALL_FILE_ROWS,
    TTL_MS,
    JobStatus,
    Start,
    StatusFile,
    StatusRow,
    begun,
    check_columns,
    check_free,
    check_recorded,
    find_job,
    find_start,
    followed_trees,
    jobs_of,
    recorded_key,
    replaced,
    tree_row,
)
from streamql.features.tablestore.jobs.windows import History, Slice, Window, select

ALL = History(began=-1, retained_after=-1, earliest_ms=None)


def job(start: int, end: int, first: int, next_version: int, **changes: Any) -> JobStatus:
    made = JobStatus("s", Window(start, end), Slice(first, next_version, True), False, None, 5, 1000)
    return replace(made, **changes)


def start(jobs: Sequence[JobStatus], a: int, b: int, history: History = ALL) -> Start:
    return find_start(jobs, Window(a, b), history, "t")


def test_a_job_continues_at_the_end_of_a_finished_one() -> None:
    assert start([job(0, 10, 0, 4)], 10, 20) == Start(3, resumed=True)
    assert start([job(0, 10, 0, 4), job(5, 10, 2, 6)], 10, 20) == Start(3, resumed=True)
    assert start([job(0, 10, 0, 4, done_ms=None)], 10, 20) == Start(-1, resumed=False)


def test_otherwise_it_begins_with_the_first_record_and_skips() -> None:
    assert start([], 10, 20) == Start(-1, resumed=False)
    assert start([], 10, 20, History(began=7, retained_after=2, earliest_ms=5)) == Start(7, resumed=False)
    assert start([], 10, 20, History(began=7, retained_after=9, earliest_ms=5)) == Start(9, resumed=False)


def test_finished_jobs_of_earlier_times_spare_the_commits_before_their_ends() -> None:
    done = [job(0, 4, 0, 2), job(4, 9, 2, 5), job(0, 11, 0, 8), job(0, 7, 0, 99, done_ms=None)]
    assert start(done, 10, 20) == Start(4, resumed=False)


def test_a_job_that_is_run_again_exports_the_same_versions() -> None:
    earlier = job(10, 20, 3, 7, done_ms=None, resumed=True)
    assert start([earlier, job(0, 10, 0, 5)], 10, 20) == Start(2, True, Slice(3, 7, True))
    again = begun("s", Window(10, 20), start([earlier], 10, 20), Slice(3, 9, False), "me", 50, earlier)
    assert again == replace(earlier, owner="me", updated_ms=50)
    assert again.finished({"U": 2}, 60) == replace(again, owner=None, done_ms=60, updated_ms=60, counts={"U": 2})
    assert again.finished({}, 60).finished({}, 70).done_ms == 60


def test_a_job_that_ran_before_its_window_began_leaves_no_position() -> None:
    empty, window = Slice(3, 3, False), Window(10, 20)
    early = begun("s", window, Start(-1, False), empty, "me", 9, None)
    assert early.is_early
    assert start([early.finished({}, 9)], 10, 20) == Start(-1, resumed=False)
    assert start([early.finished({}, 9)], 20, 30) == Start(-1, resumed=False)
    for now, versions, resumed in (
        (10, empty, False),
        (9, Slice(3, 4, False), False),
        (9, Slice(3, 3, True), False),
        (9, empty, True),
    ):
        made = begun("s", window, Start(-1, resumed), versions, "me", now, None).finished({}, now)
        assert not made.is_early
        assert start([made], 20, 30) == Start(versions.next - 1, resumed=True)
        assert start([made], 10, 20) == Start(2, resumed, versions)


@pytest.mark.parametrize(
    ("jobs", "window"),
    [([], (9, 20)), ([job(0, 10, 0, 4)], (10, 20)), ([job(10, 20, 4, 7)], (10, 20))],
)
def test_what_is_gone_is_an_error_that_names_the_earliest_time(jobs: list[JobStatus], window: tuple[int, int]) -> None:
    with pytest.raises(StreamqlError, match=r"1970-01-01 00:00:00\.010Z \(10\)") as e:
        start(jobs, *window, History(began=0, retained_after=4, earliest_ms=10))
    assert e.value.code == "STREAM_STALE"


def test_rows_read_back() -> None:
    made = job(10, 20, 3, 7, owner="host:1:2", done_ms=None, counts={"U": 3, "DR": 1})
    row = made.to_row()
    assert row.key == ("s", "DataxJobDesc", "0000000000000020\t0000000000000010")
    assert jobs_of([row], "s", 1000, "t") == [made]
    assert jobs_of([row], "other", 1000, "t") == []
    assert jobs_of([replace(row, status_type="ShardTimeCheckpointForDataxReader", status="x")], "s", 1000, "t") == []


def test_the_newest_row_of_a_key_counts_and_old_rows_expire() -> None:
    old, new = job(0, 10, 0, 4, updated_ms=10), job(0, 10, 0, 4, updated_ms=20, counts={"U": 1})
    for rows in ([old.to_row(), new.to_row()], [new.to_row(), old.to_row()]):
        assert jobs_of(rows, "s", 30, "t") == [new]
    assert jobs_of([old.to_row()], "s", 10 + TTL_MS - 1, "t") == [old]
    assert jobs_of([old.to_row()], "s", 10 + TTL_MS, "t") == []


@pytest.mark.parametrize(
    "change",
    [
        lambda row, data: replace(row, status="{"),
        lambda row, data: replace(row, status="7"),
        lambda row, data: replace(row, status=json.dumps(data | {"format": 2})),
        lambda row, data: replace(row, status=json.dumps(data | {"next": -1})),
        lambda row, data: replace(row, status=json.dumps(data | {"counts": 3})),
        lambda row, data: replace(row, status_value="0010"),
        lambda row, data: replace(row, status_value="10\t10"),
    ],
)
def test_rows_that_no_export_wrote_are_refused(change: Any) -> None:
    row = job(0, 10, 0, 4).to_row()
    with pytest.raises(StreamqlError, match="did not write") as e:
        jobs_of([change(row, json.loads(row.status))], "s", 1000, "shop.status")
    assert e.value.code == "STATUS_TABLE_INVALID"
    assert "DELETE FROM shop.status" in e.value.hint


def test_another_table_is_refused() -> None:
    check_columns(COLUMNS, "t")
    check_columns([(name.upper(), data_type.upper()) for name, data_type in COLUMNS], "t")
    for found in ([], COLUMNS[:-1], (*COLUMNS, ("more", "int")), (("StreamId", "bigint"), *COLUMNS[1:])):
        with pytest.raises(StreamqlError, match="t is not a status table") as e:
            check_columns(found, "t")
        assert e.value.code == "STATUS_TABLE_INVALID"


def test_a_job_has_one_process() -> None:
    running = job(0, 10, 0, 4, owner="a", updated_ms=100)

    def check(dead: bool | None, now: int, status: JobStatus | None = running, owner: str = "b") -> None:
        check_free(status, owner, lambda process: dead, now, 60)

    check(False, 100, None)
    check(False, 100, replace(running, owner=None))
    check(False, 100, owner="a")
    check(True, 100)
    check(None, 160)
    for dead, now in ((False, 10_000), (None, 159)):
        with pytest.raises(StreamqlError, match=r"a, last seen at") as e:
            check(dead, now)
        assert e.value.code == "JOB_BUSY"
    check(None, 160, running)
    with pytest.raises(StreamqlError):
        check(None, 160, running.alive(120))


def row(key: str, updated_ms: int) -> StatusRow:
    return StatusRow("s", "DataxJobDesc", key, "{}", updated_ms)


def test_a_row_replaces_the_file_of_the_row_before() -> None:
    files = [StatusFile("a", (row("1", 5),)), StatusFile("b", (row("2", 6), row("3", 7)))]
    assert replaced(files, [row("1", 8)], 9) == (["a"], [row("1", 8)])
    assert replaced(files, [row("3", 8)], 9) == (["b"], [row("2", 6), row("3", 8)])
    assert replaced(files, [row("4", 8)], 9) == ([], [row("4", 8)])
    assert replaced(files, [row("4", 8)], 6 + TTL_MS) == (["a", "b"], [row("3", 7), row("4", 8)])


def test_many_files_become_one_and_large_ones_stay() -> None:
    small = [StatusFile(f"f{i}", (row(f"{i}", 5),)) for i in range(FILES_MAX)]
    large = StatusFile("large", tuple(row(f"l{i}", 5) for i in range(SMALL_FILE_ROWS + 1)))
    assert replaced([*small, large], [row("new", 6)], 9)[0] == []
    more = StatusFile("more", (row("more", 5),))
    paths, rows = replaced([*small, large, more], [row("new", 6), row("l0", 6)], 9)
    assert paths == [*(f.path for f in small), "more"]
    assert len(rows) == FILES_MAX + 3
    half = [row(f"l{i}", 6) for i in range(SMALL_FILE_ROWS // 2 + 1)]
    assert replaced([large], half, 9)[0] == ["large"]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=4), max_size=2 * FILES_MAX),
    st.integers(0, 5),
)
def test_no_commit_deletes_the_newest_row_of_another_key(rows: list[list[tuple[int, int]]], key: int) -> None:
    now = 30 + TTL_MS  # rows up to 30 have expired
    files = [StatusFile(str(i), tuple(row(str(k), t) for k, t in part)) for i, part in enumerate(rows)]
    added = row(str(key), 61)
    paths, written = replaced(files, [added], now)
    left = [r for f in files if f.path not in paths for r in f.rows]
    assert all(r.updated_ms > 30 for r in left)
    before = [r for f in files for r in f.rows if r.updated_ms > 30 and r.key != added.key]
    newest = {k: max(r.updated_ms for r in before if r.key == k) for k in {r.key for r in before}}
    after = [*left, *written]
    assert {r.key: r.updated_ms for r in after} == newest | {added.key: 61}


def test_a_shard_tree_in_the_status_table() -> None:
    tree = ShardTree("t1", 3, (Generation(0, 3, 2, ("id",), ("bigint",)),))
    found = tree_row(tree.stream_id, Followed(7, tree), 10)
    assert followed_trees([found, row("1", 5), replace(found, status="{")], "t") == [Followed(7, tree)]
    assert jobs_of([found], tree.stream_id, 10, "t") == []


def test_a_status_table_that_was_deleted_is_refused() -> None:
    properties = {recorded_key("shop.Status"): "id"}
    check_recorded(properties, "shop.status", "id", "t")
    check_recorded(properties, "shop.other", None, "t")
    check_recorded({}, "shop.status", None, "t")
    for found, what in ((None, "was dropped: "), ("other", "was dropped and made anew: ")):
        with pytest.raises(StreamqlError, match=what) as e:
            check_recorded(properties, "shop.status", found, "t")
        assert e.value.code == "STATUS_TABLE_INVALID"
        assert "UNSET TBLPROPERTIES ('tablestore.status_table.shop.status')" in e.value.hint


@dataclass(frozen=True)
class At:
    version: int
    time_ms: int


@dataclass
class World:
    """A log that grows, and jobs on it that may die before they finish. The clock is that of the commits."""

    log: list[At] = field(default_factory=list)
    rows: list[StatusRow] = field(default_factory=list)

    def run(self, window: Window, now_ms: int, *, dies: bool) -> JobStatus:
        jobs = jobs_of(self.rows, "s", now_ms, "t")
        found = find_start(jobs, window, ALL, "t")
        chosen = select(self.log[found.after + 1 :], window, found.after, resumed=found.resumed)
        status = begun("s", window, found, chosen, "me", now_ms, find_job(jobs, window))
        self.rows.append(status.to_row())
        if not dies:
            self.rows.append(status.finished({}, now_ms).to_row())
        return status


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.integers(0, 7), st.just(False)),
    st.tuples(st.just("run"), st.integers(0, 5), st.booleans()),
)


@given(st.lists(STEPS, max_size=30))
def test_a_chain_of_jobs_exports_each_commit_once_whenever_its_jobs_run(steps: list[tuple[str, int, bool]]) -> None:
    """Clocks may stand still or go ahead; jobs run before, in and after their windows, die, and run again."""
    world, time_ms, next_job = World(), 0, 0
    finished: dict[int, Slice] = {}
    for what, number, dies in steps:
        if what == "commit":
            time_ms += number
            world.log.append(At(len(world.log), time_ms))
            continue
        chosen = min(number, next_job)  # a job that ran before, or the next one of the chain
        status = world.run(Window(10 * chosen, 10 * chosen + 10), time_ms, dies=dies)
        assert status.versions == finished.get(chosen, status.versions)
        if not dies and not status.is_early:
            finished[chosen] = status.versions
            next_job = max(next_job, chosen + 1)
    rest = world.run(Window(10 * next_job, 10**6), max(time_ms, 10 * next_job), dies=False).versions
    chain = [version for part in (*finished.values(), rest) for version in range(part.first, part.next)]
    assert sorted(chain) == list(range(len(world.log)))
