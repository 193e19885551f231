"""Runs of random graphs of tasks, step by step, against what the rules say of each task at the end."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from streamql.features.tasks.model.runs import (
    FALSE,
    NOT_REACHED,
    SUSPENDED,
    GraphRun,
    Node,
    TaskRun,
    continued,
    read_run,
    ready,
    run_json,
)
from tests.sample import SEED, amount

GRAPHS = amount(300, 20_000)
ROOT = "0"


def graph(rng: random.Random) -> dict[str, Node]:
    """A root, tasks behind it, and perhaps a finalizer."""
    nodes = {ROOT: Node(ROOT, "t0")}
    for n in range(1, rng.randint(1, 7)):
        parents = tuple(rng.sample(sorted(nodes), rng.randint(1, min(3, len(nodes)))))
        nodes[str(n)] = Node(str(n), f"t{n}", parents, is_suspended=rng.random() < 0.2)
    if rng.random() < 0.4:
        nodes["f"] = Node("f", "final", (), rng.random() < 0.2, is_finalizer=True)
    return nodes


def played(
    rng: random.Random, nodes: Mapping[str, Node], fates: Mapping[str, list[str]], retries: int
) -> tuple[GraphRun, list[str]]:
    """Runs a graph as schedulers do: claims what is ready, ends what runs, in any order; some give tasks back, or die. Returns the run at
    its end, and the tasks in the order in which they ended."""
    run, order, clock = GraphRun("r", 1, 0, 0), [], 0
    tries: dict[str, int] = {}
    while not run.ended_ms:
        clock += 1
        assert read_run(json.loads(json.dumps(run_json(run)))) == run
        can_begin, running = ready(run, nodes, ROOT), run.running
        assert can_begin or running
        if can_begin and (not running or rng.random() < 0.5):
            uuid = rng.choice(can_begin)
            assert uuid not in run.tasks
            run, entry = run.claimed(
                TaskRun("r", uuid, nodes[uuid].name, "RUNNING", attempt=run.attempt, started_ms=clock)
            )
            assert entry.number == run.claims
            continue
        task = rng.choice(running)
        if rng.random() < 0.1:  # given back
            run = run.without(task.uuid)
            continue
        if rng.random() < 0.1:  # taken over
            run, _ = run.claimed(task)
            continue
        tried = tries[task.uuid] = tries.get(task.uuid, 0) + 1
        fate = fates[task.uuid][min(tried, len(fates[task.uuid])) - 1]
        order.append(task.uuid)
        state = {"ok": "SUCCEEDED", "fail": "FAILED", "false": "SKIPPED"}[fate]
        why = {"ok": None, "fail": "no", "false": FALSE}[fate]
        run = run.put(replace(task, state=state, why=why, ended_ms=clock))  # type: ignore[arg-type]
        run = continued(run, nodes, ROOT, retries, clock)
    return run, order


def expected(nodes: Mapping[str, Node], fates: Mapping[str, list[str]], retries: int) -> dict[str, str]:
    """What becomes of each task, computed from its parents alone: the state at the end, or why it did not run."""
    found: dict[str, str] = {}
    for node in nodes.values():  # parents come first
        if node.is_finalizer:
            continue
        above = [found[p] for p in node.parents]
        if any(a in ("fail", "above") for a in above):
            found[node.uuid] = "above"
        elif above and all(a in ("false", SUSPENDED, NOT_REACHED) for a in above):
            found[node.uuid] = NOT_REACHED
        elif node.parents and node.is_suspended:
            found[node.uuid] = SUSPENDED
        else:
            # A failed task is tried again as often as the graph is, which is at most `retries` times.
            tries = fates[node.uuid][: retries + 1]
            found[node.uuid] = next((f for f in tries if f != "fail"), "fail")
    return found


def test_random_graphs() -> None:
    rng = random.Random(SEED)
    for _ in range(GRAPHS):
        nodes = graph(rng)
        fates = {u: rng.choices(["ok", "fail", "false"], [6, 2, 1], k=1) for u in nodes}
        run, order = played(rng, nodes, fates, 0)
        want = expected(nodes, fates, 0)
        for uuid, fate in want.items():
            task = run.tasks[uuid]
            if fate in ("ok", "fail"):
                assert task.state == {"ok": "SUCCEEDED", "fail": "FAILED"}[fate], (nodes, fates)
            else:
                assert task.state == "SKIPPED", (nodes, fates)
                assert fate == "above" or task.why in (FALSE, fate), (nodes, fates)
                assert (fate == "above") == task.has_failed
        for uuid in order:  # each task ended behind all its parents that ran
            above = [p for p in nodes[uuid].parents if p in order]
            assert all(order.index(p) < order.index(uuid) for p in above)
        final = nodes.get("f")
        if final is not None:
            runs = not final.is_suspended and any(want[u] in ("ok", "fail") for u in order if u != "f")
            assert ("f" in order) is runs
            assert not runs or order[-1] == "f"
        assert len(order) == len(set(order))
        assert bool(run.failed) == ("fail" in want.values() or (fates.get("f") == ["fail"] and "f" in order))


@pytest.mark.parametrize("retries", [1, 3])
def test_random_graphs_with_retries(retries: int) -> None:
    rng = random.Random(SEED + retries)
    for _ in range(GRAPHS):
        nodes = graph(rng)
        fates = {u: [*["fail"] * rng.choice([0, 0, 0, 1, 2]), "ok"] for u in nodes}
        fates["f"] = ["ok"]
        run, order = played(rng, nodes, fates, retries)
        assert run.attempt <= retries + 1
        if not run.failed:
            suspended = {t.uuid for t in run.tasks.values() if t.state == "SKIPPED"}
            assert all(t.state == "SUCCEEDED" for t in run.tasks.values() if t.uuid not in suspended)
        else:
            assert run.attempt == retries + 1
        for uuid in set(order) - {"f"}:  # a task that went well is not run again
            assert order.count(uuid) <= fates[uuid].index("ok") + 1
