"""Plans of the changes of each commit, against a table that is played commit by commit. No Spark."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamql.changes.by_commit import CommitsPlan, changed_files, first_commit, in_batches, plan_commits, without_uses
from streamql.delta.log import Commit, FileState, parse_commits
from streamql.errors import StreamqlError

Rows = Counter[tuple[str, int]]
FILE_ROWS = 4


@dataclass
class Table:
    """A table as sets of positions: the rows that each deletion vector marks, and by version the rows that came and went."""

    live: dict[str, frozenset[int]] = field(default_factory=dict)
    removed: dict[str, frozenset[int]] = field(default_factory=dict)
    vectors: dict[str, frozenset[int]] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    came: dict[int, Rows] = field(default_factory=dict)
    went: dict[int, Rows] = field(default_factory=dict)
    files: int = 0

    def action(self, path: str, deleted: frozenset[int], is_data: bool) -> dict[str, Any]:
        body: dict[str, Any] = {"path": path, "partitionValues": {}, "size": 1, "dataChange": is_data}
        body |= {"baseRowId": 10, "defaultRowCommitVersion": 1}
        if deleted:
            name = "v" + "".join(map(str, sorted(deleted)))
            self.vectors[name] = deleted
            body["deletionVector"] = {
                "storageType": "u",
                "pathOrInlineDv": name,
                "offset": 1,
                "cardinality": len(deleted),
            }
        return body

    def rows(self, state: FileState | None) -> set[int]:
        """The positions of a file that a state has."""
        if state is None:
            return set()
        return set(range(FILE_ROWS)) - (self.vectors[state.vector[1]] if state.vector else frozenset())

    def commit(self, steps: list[tuple[str, int, frozenset[int], bool]]) -> None:
        """One commit of steps (what, which file, deleted positions, whether rows change); each file takes part once."""
        version = len(self.commits) + 5
        info = {"commitInfo": {"operation": "WRITE", "tags": {"delta.rowTracking.preserved": "true"}}}
        actions: list[dict[str, Any]] = [info]
        came, went, touched = Rows(), Rows(), set[str]()
        for what, number, deleted, is_data in steps:
            known = sorted((self.removed if what == "back" else self.live).keys() - touched)
            if what == "new":
                path, before, after = f"f{self.files}", None, deleted
                self.files += 1
            elif known:
                path = known[number % len(known)]
                before = None if what == "back" else self.live[path]
                after = {"back": deleted, "drop": None, "again": before, "vector": deleted}[what]
            else:
                continue
            touched.add(path)
            if before is not None:
                actions.append({"remove": self.action(path, before, is_data)})
                self.removed[path] = self.live.pop(path)
            if after is not None:
                actions.append({"add": self.action(path, after, is_data)})
                self.removed.pop(path, None)
                self.live[path] = after
            if is_data:
                everything = frozenset(range(FILE_ROWS))
                old = everything - before if before is not None else frozenset()
                new = everything - after if after is not None else frozenset()
                came.update((path, row) for row in new - old)
                went.update((path, row) for row in old - new)
        self.commits += parse_commits(json.dumps([{"version": version, "time": version, "actions": actions}]))
        self.came[version], self.went[version] = came, went


def planned(table: Table, plan: CommitsPlan, sign: int) -> dict[int, Rows]:
    found: dict[int, Rows] = {}
    for file in plan.files:
        for use in file.uses:
            rows = table.rows(use.state) - table.rows(use.other)
            if use.sign == sign:
                found.setdefault(use.version, Rows()).update((file.file.path, row) for row in rows)
            assert not use.is_whole or rows == set(range(FILE_ROWS))
    return {version: rows for version, rows in found.items() if rows}


STEPS = st.tuples(
    st.sampled_from(["new", "drop", "vector", "again", "back"]),
    st.integers(0, 9),
    st.frozensets(st.integers(0, FILE_ROWS - 1), max_size=3),
    st.sampled_from([True, True, True, False]),
)


COMMITS = st.lists(st.lists(STEPS, min_size=1, max_size=4), min_size=2, max_size=8)


def played(commits: list[list[tuple[str, int, frozenset[int], bool]]]) -> Table:
    table = Table()
    for steps in commits:
        table.commit(steps)
    return table


@settings(deadline=None, max_examples=300)
@given(COMMITS, st.integers(1, 6))
def test_each_row_comes_and_goes_in_its_commit_and_each_file_is_read_once(
    commits: list[list[tuple[str, int, frozenset[int], bool]]], uses_max: int
) -> None:
    table = played(commits)
    plan = plan_commits(table.commits)
    assert planned(table, plan, +1) == {v: rows for v, rows in table.came.items() if rows}
    assert planned(table, plan, -1) == {v: rows for v, rows in table.went.items() if rows}
    assert len({f.file.path for f in plan.files}) == len(plan.files)
    assert all([u.version for u in f.uses] == sorted(u.version for u in f.uses) for f in plan.files)
    both = {v for v in table.came if table.came[v] and table.went[v]}
    assert both <= plan.compared
    empty = {u for f in plan.files for u in f.uses if not table.rows(u.state) - table.rows(u.other)}
    completed = without_uses(plan, empty)
    assert completed.compared == both
    assert completed.told <= completed.compared
    assert [planned(table, completed, s) for s in (+1, -1)] == [planned(table, plan, s) for s in (+1, -1)]
    assert all(f.uses for f in completed.files)
    batches = in_batches(table.commits, uses_max)
    assert [c for batch in batches for c in batch] == table.commits
    assert all(len(batch) == 1 or sum(1 for _ in changed_files(batch)) <= uses_max for batch in batches)
    found: dict[int, Rows] = {}
    for batch in batches:
        found |= planned(table, plan_commits(batch), +1)
    assert found == planned(table, plan, +1)


@settings(deadline=None, max_examples=300)
@given(COMMITS)
def test_states_that_vacuum_may_have_removed_are_named(
    commits: list[list[tuple[str, int, frozenset[int], bool]]],
) -> None:
    table = played(commits)
    plan = plan_commits(table.commits)
    perishable = {s.path for s in plan.perishable}
    assert {f.file.path for f in plan.files} - table.live.keys() <= perishable
    vectors = {s.vector for f in plan.files for u in f.uses for s in (u.state, u.other) if s is not None and s.vector}
    assert vectors == {s.vector for s in plan.perishable if s.vector}


def test_a_commit_that_only_adds_or_only_removes_is_not_compared() -> None:
    table = played(
        [
            [("new", 0, frozenset(), True), ("new", 0, frozenset(), True)],
            [("vector", 0, frozenset({1}), True)],
            [("drop", 0, frozenset(), True), ("new", 0, frozenset(), True)],
            [("drop", 0, frozenset(), False), ("new", 0, frozenset(), False)],
        ]
    )
    plan = plan_commits(table.commits)
    assert plan.compared == {7}
    assert plan.uses == 5


def test_a_file_that_is_only_named_again_is_not_read() -> None:
    table = played([[("new", 0, frozenset(), True)], [("again", 0, frozenset(), True)]])
    (file,) = plan_commits(table.commits).files
    assert [u.version for u in file.uses] == [5]


def test_no_commits_and_no_changes_are_an_empty_plan() -> None:
    table = played([[("new", 0, frozenset(), False)]])
    for commits in ([], table.commits):
        plan = plan_commits(commits)
        assert (plan.files, plan.uses, plan.compared, plan.perishable) == ((), 0, frozenset(), ())
    assert in_batches([]) == []


def test_a_batch_is_as_long_as_it_may_be() -> None:
    table = played([[("new", 0, frozenset(), True)]] * 5)
    assert [len(batch) for batch in in_batches(table.commits, 2)] == [2, 2, 1]


def rewrite(version: int, operation: str, before: str, after: str, written: int) -> list[Commit]:
    body = {"partitionValues": {}, "size": 1, "dataChange": True, "baseRowId": 1}
    info = {"commitInfo": {"operation": operation, "tags": {"delta.rowTracking.preserved": "true"}}}
    remove = {"remove": body | {"path": before, "defaultRowCommitVersion": 1}}
    add = {"add": body | {"path": after, "defaultRowCommitVersion": written}}
    return parse_commits(json.dumps([{"version": version, "time": 1, "actions": [info, remove, add]}]))


def test_versions_of_rows_tell_what_a_rewrite_changed_unless_old_rows_may_come_back() -> None:
    commits = rewrite(5, "UPDATE", "o", "n", 5) + rewrite(6, "RESTORE", "n", "o", 1) + rewrite(7, "NEW", "o", "p", 7)
    plan = plan_commits(commits)
    assert plan.compared == {5, 6, 7}
    assert plan.told == {5, 7}
    again = without_uses(plan, {u for f in plan.files for u in f.uses if u.version == 5 and u.sign == -1})
    assert (again.compared, again.told) == ({6, 7}, {7})


def test_the_first_commit_of_a_table_removes_nothing() -> None:
    (commit,) = rewrite(5, "CREATE OR REPLACE TABLE AS SELECT", "o", "n", 5)
    plan = plan_commits([first_commit(commit)])
    assert [(f.file.path, u.sign) for f in plan.files for u in f.uses] == [("n", +1)]


def test_a_file_is_read_by_the_action_that_tells_its_size() -> None:
    add = {
        "path": "f",
        "partitionValues": {},
        "size": 7,
        "dataChange": True,
        "baseRowId": 1,
        "defaultRowCommitVersion": 1,
    }
    remove = {k: add[k] for k in ("path", "dataChange", "baseRowId", "defaultRowCommitVersion")}
    info = {"commitInfo": {"operation": "WRITE"}}
    gone = {"version": 5, "time": 5, "actions": [info, {"remove": remove}]}
    back = {"version": 6, "time": 6, "actions": [info, {"add": add}]}
    (file,) = plan_commits(parse_commits(json.dumps([gone, back]))).files
    assert file.file.action["size"] == 7
    assert [u.sign for u in file.uses] == [-1, +1]
    with pytest.raises(StreamqlError, match="does not say size") as e:
        plan_commits(parse_commits(json.dumps([gone])))
    assert e.value.code == "CHANGES_UNREADABLE"


def test_commits_without_row_identity_are_refused() -> None:
    action = {"path": "f", "partitionValues": {}, "size": 7, "dataChange": True}
    commit = {"version": 5, "time": 5, "actions": [{"commitInfo": {"operation": "WRITE"}}, {"add": action}]}
    with pytest.raises(StreamqlError, match="without change tracking"):
        plan_commits(parse_commits(json.dumps([commit])))
    off = {"metaData": {"configuration": {}}}
    with pytest.raises(StreamqlError, match="switched change tracking off"):
        plan_commits(parse_commits(json.dumps([{"version": 5, "time": 5, "actions": [off]}])))
