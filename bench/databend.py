"""Databend's engine on tables of its own, with the same rows and the same changes: the package `databend` of PyPI, in a second process.

It needs Python ≥ 3.12 and posts telemetry when it starts, so it runs in a network namespace of its own, with nothing but loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.changes import built, case, ours
from bench.context import Context
from bench.measuring import Benchmark, Case, Target

VERSION = "1.2.895"
ENGINE = Path(__file__).with_name("databend_engine.py")
THEIRS = "Databend CHANGES"


class Unavailable(Exception):
    """Databend cannot be had here; says why."""


class Engine:
    """The second process: statements in, seconds and rows out, a line each."""

    def __init__(self, python: Path, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        inside = [
            "sh",
            "-c",
            'ip link set lo up && exec "$@"',
            "sh",
            str(python),
            str(ENGINE.absolute()),
            str(directory),
        ]
        for isolate in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
            if (
                shutil.which("unshare")
                and subprocess.run([*isolate, "true"], capture_output=True, check=False).returncode == 0
            ):
                command = [*isolate, *inside]
                break
        else:
            raise Unavailable("no network namespace can be made here (unshare --net), and it is not run with a network")
        self._process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.sql("SELECT 1")

    def sql(self, text: str) -> tuple[float, list[list[Any]]]:
        """Seconds and rows of a statement. Raises Unavailable where the engine died, RuntimeError where it refused."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(text) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Unavailable(f"Databend's process ended with {self._process.wait()} at: {text[:100]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["seconds"], answer["rows"]


def python_with_databend(directory: Path) -> Path:
    """A Python that has the package: one in the data directory, made once. Raises Unavailable."""
    home = directory / "databend-python"
    python = home / "bin" / "python"
    if not python.exists():
        found = next((p for p in candidates() if is_new_enough(p)), None)
        if found is None:
            raise Unavailable("it needs Python 3.12 or later, which is not on the PATH")
        for command in (
            [found, "-m", "venv", str(home)],
            [str(python), "-m", "pip", "install", "-q", f"databend=={VERSION}", "pyarrow"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                shutil.rmtree(home, ignore_errors=True)
                raise Unavailable(f"databend {VERSION} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return python


def candidates() -> list[str]:
    """Pythons that may be new enough: this one, those on the PATH, pyenv's."""
    named = [p for p in map(shutil.which, ("python3.14", "python3.13", "python3.12")) if p]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [sys.executable, *named, *map(str, sorted(pyenv.glob("versions/3.1[2-9]*/bin/python")))]


def is_new_enough(python: str) -> bool:
    """Whether a Python runs and is 3.12 or later."""
    check = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]
    return subprocess.run(check, capture_output=True, check=False).returncode == 0


def engine(context: Context) -> Engine:
    """The context's engine, started at the first use. Raises Unavailable."""
    if context.databend is None:
        directory = context.directory.absolute()
        context.databend = Engine(python_with_databend(directory), directory / "databend")
    return context.databend


COLUMNS = (
    "{n} AS id, {n} % 1000 AS grp, concat('name-', ({n})::STRING) AS name, "
    "({n}) * 0.5 AS amount, to_timestamp(1700000000 + {n}) AS at"
)


def statements(kind: str, rows: int) -> list[str]:
    """The changes of bench.changes.statements in Databend's words."""
    some, half = rows // 100, rows // 2
    if kind == "insert":
        return [f"INSERT INTO t SELECT {COLUMNS.format(n=f'number + {rows}')} FROM numbers({some})"]
    if kind == "clustered":
        return [f"UPDATE t SET amount = amount + 1 WHERE id >= {half} AND id < {half + some}"]
    if kind == "update":
        return ["UPDATE t SET amount = amount + 1 WHERE id % 100 = 7"]
    mixed = []
    for n in range(2):
        keys = COLUMNS.format(n=f"number * 600 + {n + 20}")
        mixed += [
            f"UPDATE t SET amount = amount + 1 WHERE id % 300 = {n}",
            f"DELETE FROM t WHERE id % 600 = {n + 10}",
            (
                f"MERGE INTO t USING (SELECT {keys} FROM numbers({-(-(rows + 980 - n) // 600)})) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET t.name = 'merged' WHEN NOT MATCHED THEN INSERT *"
            ),
        ]
    return [*mixed, "OPTIMIZE TABLE t COMPACT"] if kind == "optimized" else mixed


def make(e: Engine, kind: str, rows: int) -> str:
    """The table t with its changes; the snapshot from before them."""
    e.sql("DROP TABLE IF EXISTS t")
    e.sql(
        "CREATE TABLE t (id BIGINT, grp BIGINT, name STRING, amount DOUBLE, at TIMESTAMP) row_per_page=1000000 change_tracking=true"
    )
    e.sql(f"INSERT INTO t SELECT {COLUMNS.format(n='number')} FROM numbers({rows})")
    _, snapshots = e.sql("SELECT snapshot_id FROM fuse_snapshot('default', 't')")
    for statement in statements(kind, rows):
        e.sql(statement)
    return str(snapshots[0][0])


READ = (
    "SELECT count(*), sum(siphash64(name) % 1000), sum(amount), max(at), sum(grp), sum(id), max(change$action), max(change$is_update) "
    "FROM t CHANGES (INFORMATION => DEFAULT) AT (SNAPSHOT => '{snapshot}')"
)


def cases(context: Context, rows: int, kind: str) -> list[Case]:
    """Ours and theirs; none where Databend cannot be had."""
    try:
        e = engine(context)
    except Unavailable as why:
        context.notes.append(f"Databend was not measured: {why}.")
        return []
    snapshot = make(e, kind, rows)
    table = built(context, kind, rows)
    query = READ.format(snapshot=snapshot)
    counted, count = int(e.sql(query)[1][0][0]), ours(table).count()
    if counted != count:
        context.notes.append(f"databend_{kind}: Databend shows {counted:,} changes, streamql {count:,}.")
    return [case("streamql", ours, table), Case(THEIRS, lambda: e.sql(query)[0])]


def benchmark(kind: str, summary: str, targets: Sequence[Target]) -> Benchmark:
    """A kind of change in both engines."""
    return Benchmark(
        f"databend_{kind}",
        f"{summary}, against Databend {VERSION}",
        lambda c, n: cases(c, n, kind),
        4_000_000,
        tuple(targets),
    )


BENCHMARKS = (
    benchmark("update", "1 % by one UPDATE, scattered", [Target(0.5, THEIRS)]),
    benchmark("mixed", "1 % by 2 x (UPDATE, DELETE, MERGE), scattered", [Target(0.5, THEIRS)]),
    benchmark("optimized", "the same, then compaction", [Target(0.5, THEIRS)]),
    benchmark("clustered", "1 % in one place updated", [Target(0.5)]),
    benchmark("insert", "1 % inserted", [Target(0.2)]),
)
