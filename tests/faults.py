"""Faults that are put into a copy of the project on purpose, one each: a test must find every one. Only long runs have them, because each
takes minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[1]
SEEDS = 5
"""How often a test may try, with other random cases."""


class Fault(NamedTuple):
    """A change of the code. `file`: a pattern of its path in `streamql`. `right`: what is replaced, which is there once."""

    file: str
    right: str
    wrong: str

    def source(self, project: Path) -> Path:
        """The only file of the pattern."""
        (found,) = (project / "streamql").glob(self.file)
        return found

    def check(self) -> None:
        """The code that the fault replaces is there, once."""
        assert self.source(PROJECT).read_text().count(self.right) == 1, f"{self.file}: {self.right}"


def assert_found(fault: Fault, test: str, directory: Path) -> None:
    """A test fails in a copy of the project that has the fault, with one of a few seeds. `test`: its id. `directory`: for the copy."""
    copy = directory / "project"
    for part in ("streamql", "tests"):
        shutil.copytree(PROJECT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", copy)
    source = fault.source(copy)
    source.write_text(source.read_text().replace(fault.right, fault.wrong))
    for seed in range(SEEDS):
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "STREAMQL_SEED": str(seed), "STREAMQL_LONG": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        name = test.rpartition("::")[2].partition("[")[0]
        is_run = (
            name in run.stdout and "JAR_BUILD_FAILED" not in run.stdout
        )  # a fault that does not compile shows nothing
        assert is_run or run.returncode == 0, run.stdout + run.stderr
        if run.returncode == 1:
            return
    raise AssertionError(f"{test} did not find the fault in {fault.file}: {fault.wrong}\n{run.stdout[-2000:]}")
