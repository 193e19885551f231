"""Databend's engine in a process of its own: the package `databend` of PyPI.

It needs Python ≥ 3.12 and posts telemetry when it starts, so it runs in a network namespace of its own, with nothing but loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

VERSION = "1.2.895"
ENGINE = Path(__file__).with_name("engine.py")


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
            "-P",  # or the modules beside the script could stand for others of their names
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
