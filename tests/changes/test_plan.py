"""Plans from hand-made commits: what is read, and by which way. No Spark."""

from __future__ import annotations

from typing import Any

import pytest

from streamql.changes import plan
from streamql.changes.plan import PlanType, plan_changes, without_pairs
from streamql.delta.log import Commit, parse_commits
from streamql.errors import StreamqlError
from streamql.model import StreamMode, Versions

MB = 1 << 20


def commit(version: int, operation: str, *actions: dict[str, Any], preserved: bool | None = True) -> Commit:
    import json

    tags = {} if preserved is None else {"delta.rowTracking.preserved": str(preserved).lower()}
    info = {"commitInfo": {"operation": operation, "timestamp": version, "tags": tags}}
    return parse_commits(json.dumps([{"version": version, "time": version, "actions": [info, *actions]}]))[0]


def add(path: str, version: int, size: int = 10 * MB, vector: int = 0, move: bool = False) -> dict[str, Any]:
    return {"add": state(path, version, size, vector, move)}


def remove(path: str, version: int, size: int = 10 * MB, vector: int = 0, move: bool = False) -> dict[str, Any]:
    return {"remove": state(path, version, size, vector, move)}


def state(path: str, version: int, size: int, vector: int, move: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "path": path,
        "partitionValues": {},
        "size": size,
        "dataChange": not move,
        "numRecords": 1000,
    }
    body |= {"baseRowId": 1000 * version, "defaultRowCommitVersion": version}
    if vector:
        body["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": f"v{vector}",
            "offset": 1,
            "sizeInBytes": 40,
            "cardinality": vector,
        }
    return body


def planned(*commits: Commit) -> plan.ChangePlan:
    return plan_changes(commits, Versions(4, 4 + len(commits)), StreamMode.STANDARD)


def shown(p: plan.ChangePlan) -> list[tuple[int, str]]:
    return sorted((piece.weight, piece.file.path) for piece in (*p.inserted, *p.pieces))


def test_what_only_adds_or_only_removes_is_not_compared() -> None:
    assert planned(commit(5, "WRITE", add("n", 5))).type is PlanType.ADDED_ONLY
    assert planned(commit(5, "DELETE", remove("o", 1))).type is PlanType.REMOVED_ONLY
    assert (
        planned(commit(5, "WRITE", add("n", 5)), commit(6, "DELETE", remove("o", 1))).type is PlanType.ADDED_AND_REMOVED
    )
    assert planned(commit(5, "WRITE", add("n", 5)), commit(6, "DELETE", remove("n", 5))).type is PlanType.NOTHING


def test_a_grown_vector_is_a_pair_and_half_of_it_goes_when_no_row_came_back() -> None:
    grown = planned(commit(5, "DELETE", remove("o", 1), add("o", 1, vector=3)), commit(6, "WRITE", add("n", 6)))
    assert grown.type is PlanType.MINIMIZE
    assert without_pairs(grown, {+1}).type is PlanType.ADDED_AND_REMOVED
    assert shown(without_pairs(grown, {+1})) == [(-1, "o"), (+1, "n")]
    assert (
        without_pairs(planned(commit(5, "DELETE", remove("o", 1), add("o", 1, vector=3))), {+1}).type
        is PlanType.REMOVED_ONLY
    )


def test_rewritten_files_are_compared_by_id_first_unless_small() -> None:
    rewrite = commit(5, "UPDATE", remove("o", 1), add("n", 5))
    assert planned(rewrite).type is PlanType.MINIMIZE_CARRIED
    gone = remove("o", 1)
    del gone["remove"]["numRecords"]  # as UPDATE removes files
    assert planned(commit(5, "UPDATE", gone, add("n", 5))).type is PlanType.MINIMIZE_CARRIED
    small = commit(5, "UPDATE", remove("o", 1, size=1000), add("n", 5, size=1000))
    assert planned(small).type is PlanType.MINIMIZE


@pytest.mark.parametrize(
    "back",
    [
        commit(6, "RESTORE", add("older", 2)),
        commit(6, "WRITE", add("older", 2)),
        commit(6, "UPDATE", remove("v", 1, vector=3), add("v", 1, vector=2)),
        commit(6, "RESTORE", remove("v", 1, vector=3), add("v", 1, vector=4)),
        commit(6, "SOMETHING NEW", remove("v", 1, vector=3), add("v", 1, vector=4)),
    ],
)
def test_versions_tell_nothing_where_old_rows_may_have_come_back(back: Commit) -> None:
    rewrite = commit(5, "UPDATE", remove("o", 1), add("n", 5))
    assert planned(rewrite, back).type is PlanType.MINIMIZE


def test_a_compaction_is_left_out_and_after_it_rewrites_count_it() -> None:
    update = commit(5, "UPDATE", remove("o", 1), add("p", 5))
    compaction = commit(
        6, "OPTIMIZE", remove("p", 5, move=True), remove("q", 2, move=True), add("x", 6, size=20 * MB, move=True)
    )
    after = commit(7, "UPDATE", remove("x", 6, size=20 * MB), add("y", 7, size=20 * MB))
    assert shown(planned(update, compaction)) == [(-1, "o"), (+1, "p")]
    counted = planned(update, compaction, after)
    assert counted.moves == {6}
    assert counted.type is PlanType.MINIMIZE_CARRIED
    assert shown(counted) == [(-1, "o"), (-1, "q"), (+1, "y")]


def test_a_compaction_stays_out_where_counting_it_would_read_more() -> None:
    insert = commit(5, "WRITE", add("n", 5, size=MB))
    compaction = commit(
        6,
        "OPTIMIZE",
        remove("n", 5, size=MB, move=True),
        remove("q", 2, size=90 * MB, move=True),
        add("x", 6, 91 * MB, move=True),
    )
    delete = commit(7, "DELETE", remove("x", 6, 91 * MB), add("x", 6, 91 * MB, vector=2))
    left_out = planned(insert, compaction, delete)
    assert not left_out.moves
    assert left_out.type is PlanType.MINIMIZE_MOVED
    assert shown(left_out) == [(-1, "x"), (+1, "n"), (+1, "x")]


BY_HAND = commit(6, "WRITE", remove("p", 5, move=True), add("x", 6, move=True), preserved=None)
"""A compaction by hand, dataChange = false: it gives rows new ids, and says nothing of having kept them."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (commit(5, "UPDATE", remove("o", 1), add("p", 5)), commit(7, "UPDATE", remove("x", 6), add("y", 7))),
        (commit(5, "WRITE", add("p", 5)), commit(7, "DELETE", remove("x", 6), add("x", 6, vector=1))),
        (commit(5, "WRITE", add("p", 5)), commit(7, "DELETE", remove("x", 6))),
    ],
)
def test_what_changed_before_and_after_a_compaction_by_hand_has_no_identity(before: Commit, after: Commit) -> None:
    with pytest.raises(StreamqlError, match="version 6 of the source rewrote") as refused:
        planned(before, BY_HAND, after)
    assert refused.value.code == "CHANGE_TRACKING_DISABLED"
    assert refused.value.facts["version"] == 6


def test_what_a_compaction_by_hand_took_is_followed_through_those_that_keep_identities() -> None:
    compacted = commit(7, "OPTIMIZE", remove("x", 6, move=True), add("z", 7, move=True))
    for deleted in (commit(8, "DELETE", remove("z", 7), add("z", 7, vector=1)), commit(8, "DELETE", remove("z", 7))):
        with pytest.raises(StreamqlError, match="version 6 of the source rewrote"):
            planned(commit(5, "WRITE", add("p", 5)), BY_HAND, compacted, deleted)


def test_what_came_after_a_compaction_by_hand_and_was_not_touched_since_is_no_harm() -> None:
    """A table that is compacted so each night, and read each second one."""
    first = commit(5, "WRITE", remove("o", 1, move=True), add("x", 5, move=True), preserved=None)
    inserted = commit(6, "WRITE", add("p", 6))
    deleted = commit(7, "DELETE", remove("x", 5), add("x", 5, vector=1))
    moved = [remove("x", 5, vector=1, move=True), remove("p", 6, move=True), add("y", 8, move=True)]
    for preserved in (None, True):
        p = planned(first, inserted, deleted, commit(8, "WRITE", *moved, preserved=preserved))
        assert shown(p) == [(-1, "x"), (+1, "p"), (+1, "x")]


def test_a_compaction_by_hand_that_nothing_follows_is_left_out() -> None:
    p = planned(commit(5, "UPDATE", remove("o", 1), add("p", 5)), BY_HAND)
    assert not p.moves
    assert shown(p) == [(-1, "o"), (+1, "p")]


def test_files_that_are_named_again_keep_their_rows_identity() -> None:
    """ANALYZE TABLE … COMPUTE DELTA STATISTICS adds them once more, with dataChange = false, and says nothing of identity."""
    statistics = commit(6, "COMPUTE STATS", add("o", 1, move=True), add("p", 5, move=True), preserved=None)
    compacted = commit(7, "OPTIMIZE", remove("p", 5, move=True), add("x", 7, move=True))
    p = planned(
        commit(5, "WRITE", add("p", 5)),
        statistics,
        compacted,
        commit(8, "DELETE", remove("o", 1), add("o", 1, vector=1)),
    )
    assert shown(p) == [(-1, "o"), (+1, "o"), (+1, "p")]


def test_changes_behind_a_compaction_by_hand_are_of_one_identity() -> None:
    deleted = commit(5, "DELETE", remove("o", 1), add("o", 1, vector=1))
    by_hand = commit(6, "WRITE", remove("o", 1, vector=1, move=True), add("x", 6, move=True), preserved=None)
    p = planned(deleted, by_hand, commit(7, "DELETE", remove("x", 6), add("x", 6, vector=2)))
    assert shown(p) == [(-1, "o"), (-1, "x"), (+1, "o"), (+1, "x")]
    assert [piece.file.path for piece in p.pieces if piece.other is None] == []
    alone = planned(commit(5, "WRITE"), by_hand, commit(7, "UPDATE", remove("x", 6), add("y", 7)))
    assert shown(alone) == [(-1, "x"), (+1, "y")]


@pytest.mark.parametrize("initial", [False, True])
def test_rows_that_a_compaction_by_hand_brought_were_not_appended(initial: bool) -> None:
    deleted = commit(7, "DELETE", remove("x", 6), add("x", 6, vector=1))
    commits = [commit(5, "WRITE", add("n", 5)), BY_HAND, deleted]
    p = plan_changes(commits, Versions(4, 7, initial), StreamMode.APPEND_ONLY)
    assert shown(p) == [(+1, "n")]


def test_initial_rows_say_which_of_their_files_may_be_gone() -> None:
    commits = [
        commit(5, "UPDATE", remove("o", 1), add("n", 5)),
        commit(6, "DELETE", remove("d", 2), add("d", 2, vector=1)),
        commit(7, "DELETE", remove("n", 5)),
    ]
    appended = plan_changes(commits[:2], Versions(4, 6, True), StreamMode.APPEND_ONLY, commits[2:])
    assert {f.path for f in appended.perishable} == {"o"}
    standard = plan_changes(commits[:2], Versions(4, 6, True), StreamMode.STANDARD, commits[2:])
    assert {f.path for f in standard.perishable} == {"n"}


def test_files_that_do_not_say_their_rows_are_compared_as_they_are() -> None:
    foreign = commit(5, "UPDATE", remove("o", 1), add("n", 5))
    for change in foreign.changes:
        for state in (change.before, change.after):
            if state is not None:
                del state.action["numRecords"]  # type: ignore[attr-defined]  # it is a dict
    assert planned(foreign).type is PlanType.MINIMIZE


def test_unpreserved_row_tracking_is_an_error() -> None:
    with pytest.raises(StreamqlError) as e:
        planned(commit(5, "UPDATE", remove("o", 1), add("n", 5), preserved=False))
    assert e.value.code == "CHANGE_TRACKING_DISABLED"


def test_few_rows_meet_in_one_task_and_many_are_shuffled() -> None:
    def rewritten(size: int, files: int = 1) -> plan.ChangePlan:
        old = [remove(f"o{n}", 1, size) for n in range(files)]
        return planned(commit(5, "UPDATE", *old, add("n", 5, size)))

    assert rewritten(16 * MB).meets_in_one_task
    assert not rewritten(17 * MB).meets_in_one_task  # both sides count
    assert not rewritten(1, files=plan.ONE_TASK_FILES_MAX).meets_in_one_task  # and each file is opened
