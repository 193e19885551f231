"""Plans from hand-made commits: what is read, and by which way. No Spark."""

from __future__ import annotations

from typing import Any

import pytest

from streamql.changes import plan
from streamql.changes.plan import PlanKind, plan_changes, without_pairs
from streamql.delta.log import Commit, parse_commits
from streamql.errors import StreamqlError
from streamql.model import Interval, StreamMode

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
    return plan_changes(commits, Interval(4, 4 + len(commits)), StreamMode.STANDARD)


def shown(p: plan.ChangePlan) -> list[tuple[int, str]]:
    return sorted((piece.weight, piece.file.path) for piece in (*p.inserted, *p.pieces))


def test_what_only_adds_or_only_removes_is_not_compared() -> None:
    assert planned(commit(5, "WRITE", add("n", 5))).kind is PlanKind.ADDED_ONLY
    assert planned(commit(5, "DELETE", remove("o", 1))).kind is PlanKind.REMOVED_ONLY
    assert (
        planned(commit(5, "WRITE", add("n", 5)), commit(6, "DELETE", remove("o", 1))).kind is PlanKind.ADDED_AND_REMOVED
    )
    assert planned(commit(5, "WRITE", add("n", 5)), commit(6, "DELETE", remove("n", 5))).kind is PlanKind.NOTHING


def test_a_grown_vector_is_a_pair_and_half_of_it_goes_when_no_row_came_back() -> None:
    grown = planned(commit(5, "DELETE", remove("o", 1), add("o", 1, vector=3)), commit(6, "WRITE", add("n", 6)))
    assert grown.kind is PlanKind.MINIMIZE
    assert without_pairs(grown, {+1}).kind is PlanKind.ADDED_AND_REMOVED
    assert shown(without_pairs(grown, {+1})) == [(-1, "o"), (+1, "n")]
    assert (
        without_pairs(planned(commit(5, "DELETE", remove("o", 1), add("o", 1, vector=3))), {+1}).kind
        is PlanKind.REMOVED_ONLY
    )


def test_rewritten_files_are_compared_by_id_first_unless_small() -> None:
    rewrite = commit(5, "UPDATE", remove("o", 1), add("n", 5))
    assert planned(rewrite).kind is PlanKind.MINIMIZE_CARRIED
    small = commit(5, "UPDATE", remove("o", 1, size=1000), add("n", 5, size=1000))
    assert planned(small).kind is PlanKind.MINIMIZE


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
    assert planned(rewrite, back).kind is PlanKind.MINIMIZE


def test_a_compaction_is_left_out_and_after_it_rewrites_count_it() -> None:
    update = commit(5, "UPDATE", remove("o", 1), add("p", 5))
    compaction = commit(
        6, "OPTIMIZE", remove("p", 5, move=True), remove("q", 2, move=True), add("x", 6, size=20 * MB, move=True)
    )
    after = commit(7, "UPDATE", remove("x", 6, size=20 * MB), add("y", 7, size=20 * MB))
    assert shown(planned(update, compaction)) == [(-1, "o"), (+1, "p")]
    counted = planned(update, compaction, after)
    assert counted.moves == {6}
    assert counted.kind is PlanKind.MINIMIZE_CARRIED
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
    assert left_out.kind is PlanKind.MINIMIZE_MOVED
    assert shown(left_out) == [(-1, "x"), (+1, "n"), (+1, "x")]


def test_a_compaction_by_hand_gives_rows_new_ids_and_is_never_counted() -> None:
    by_hand = commit(6, "WRITE", remove("p", 5, move=True), add("x", 6, move=True), preserved=None)
    p = planned(
        commit(5, "UPDATE", remove("o", 1), add("p", 5)), by_hand, commit(7, "UPDATE", remove("x", 6), add("y", 7))
    )
    assert not p.moves
    assert p.kind is PlanKind.MINIMIZE_MOVED
    assert shown(p) == [(-1, "o"), (-1, "x"), (+1, "p"), (+1, "y")]


def test_files_that_do_not_say_their_rows_are_compared_as_they_are() -> None:
    foreign = commit(5, "UPDATE", remove("o", 1), add("n", 5))
    for change in foreign.changes:
        for state in (change.before, change.after):
            if state is not None:
                del state.action["numRecords"]  # type: ignore[attr-defined]
    assert planned(foreign).kind is PlanKind.MINIMIZE


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
