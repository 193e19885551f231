"""Runs `streamql scheduler --once`, in a process of its own, as cron does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from examples.flights.problems import DemoError
from streamql.extension.host import QUICK_JVM

SECONDS_MAX = 600


def run_once(data: Path, events: Path) -> list[dict[str, Any]]:
    """Runs what is due in a data directory. Returns the events of what has ended. Raises DemoError if the command fails."""
    java = ("--conf", f"spark.driver.extraJavaOptions={' '.join(QUICK_JVM)}")
    command = [
        sys.executable,
        "-m",
        "streamql",
        "--data",
        str(data),
        *java,
        "scheduler",
        "--once",
        "--events",
        str(events),
    ]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    if done.returncode != 0:
        raise DemoError(f"streamql scheduler --once ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    told = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    return [event for event in told if event["event"] in ("finished", "failed")]
