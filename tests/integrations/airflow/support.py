"""Airflow as a site runs it: scheduler, triggerer, DAG processor and API server, over a home of its own with SQLite."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.integrations.support import COMMAND, ROOT, SECONDS_MAX, Server, free_port
from tests.server_process import TestServer, said_by, start_process

AIRFLOW = (sys.executable, "-m", "airflow")


EXAMPLES = ROOT / "examples" / "airflow"
WRONG = ROOT / "tests" / "integrations" / "airflow" / "dags" / "wrong.py"


def variables(home: Path, server: Server, dags: Path = EXAMPLES) -> dict[str, str]:
    """The environment of Airflow's processes. Its timeouts are those of a busy machine."""
    port = free_port()
    extra = {"connect": server.streamql.connect, "command": list(COMMAND)}
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "5",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "120",
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "10",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "1200",
        "AIRFLOW_CONN_STREAMQL": json.dumps({"conn_type": "generic", "extra": extra}),
    }


class Airflow(TestServer):
    """`airflow standalone`."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._home = home
        self._environment = dict(environment)
        self.log = home / "standalone.log"

    def start(self) -> Airflow:
        migrate = [*AIRFLOW, "db", "migrate"]
        done = subprocess.run(migrate, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        self._process = start_process([*AIRFLOW, "standalone"], self.log, ROOT, self._environment)
        return self

    def close(self) -> None:
        if not hasattr(self, "_process"):
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        with contextlib.suppress(ProcessLookupError):  # it does not wait for all of its processes
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What Airflow's database has."""
        with sqlite3.connect(f"file:{self._home}/airflow.db?mode=ro", uri=True, timeout=60) as connection:
            return connection.execute(query, values).fetchall()

    def runs(self, dag: str) -> list[tuple[str, str]]:
        """The runs of a DAG, (id, state), the oldest first."""
        return self.rows("SELECT run_id, state FROM dag_run WHERE dag_id = ? ORDER BY id", dag)

    def wait_for_run(self, dag: str, number: int) -> str:
        """Waits until a DAG has so many runs that have succeeded. Returns the id of the last of them."""
        return self._wait(lambda: [r for r, state in self.runs(dag) if state == "success"][number - 1 : number])

    def wait_for_deferral(self) -> str:
        """Waits until the sensor waits in the triggerer. Returns the id of its run."""
        query = "SELECT run_id FROM task_instance WHERE task_id = 'changes' AND state = 'deferred'"
        return self._wait(lambda: [run for (run,) in self.rows(query)])

    def _wait(self, look: Any) -> str:
        deadline = time.monotonic() + SECONDS_MAX
        while not (found := look()):
            assert self._process.poll() is None, said_by(self.log)[-5000:]
            assert time.monotonic() < deadline, said_by(self.log)[-5000:]
            time.sleep(1)
        first: str = found[0]
        return first

    def events(self) -> dict[str, list[dict[str, Any]]]:
        """What was reported with each asset, the oldest first, by the end of its URI."""
        query = "SELECT asset.uri, e.extra FROM asset_event e JOIN asset ON asset.id = e.asset_id ORDER BY e.id"
        found: dict[str, list[dict[str, Any]]] = {}
        for uri, extra in self.rows(query):
            found.setdefault(uri, []).append(json.loads(extra) if isinstance(extra, str) else extra)
        return found

    def said(self, dag: str, run: str, task: str) -> str:
        """The log of a task."""
        return "".join(map(said_by, sorted(self._home.glob(f"logs/dag_id={dag}/run_id={run}/task_id={task}/*"))))


def became_of(environment: Mapping[str, str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Runs DAGs of `wrong.py` by DAG.test, in a process; what became of each task."""
    command = [sys.executable, str(WRONG), *names]
    done = subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"dag"')]
    assert lines, done.stdout[-3000:] + done.stderr[-3000:]
    return {found["dag"]: {**found, "log": done.stdout + done.stderr} for found in map(json.loads, lines)}
