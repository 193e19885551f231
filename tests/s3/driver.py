"""A driver in a process of its own, which runs the statements that it is told: `python -m tests.s3.driver DATA`.

Its settings are in DRIVER_CONF, as JSON. A line of its standard input is a list of statements, as JSON. It answers each with a line: the
rows of the last one, or the error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.consume.support import ROOT

ANSWER_SECONDS_MAX = 240


class DriverError(Exception):
    """What a statement raised: its text."""


class Driver:
    """The process, seen by the test that started it."""

    def __init__(self, data: Path, conf: Mapping[str, str]) -> None:
        """Start it in the directory above `data`."""
        data.parent.mkdir(parents=True, exist_ok=True)
        self._errors = data.parent / "stderr"
        env = {**os.environ, "DRIVER_CONF": json.dumps(dict(conf)), "PYTHONPATH": str(ROOT)}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.s3.driver", str(data)],
                cwd=data.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=env,
            )

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, *statements: str) -> None:
        """Have it run statements."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(statements) + "\n")
        self._process.stdin.flush()

    def end(self) -> list[dict[str, Any]]:
        """Wait for its answer: the rows of the last statement. Raises DriverError if a statement raised."""
        assert self._process.stdout is not None
        timer = threading.Timer(ANSWER_SECONDS_MAX, self._process.kill)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            self.close()
            raise RuntimeError(f"the driver ended: {self.errors[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise DriverError(answer["error"])
        rows: list[dict[str, Any]] = answer["rows"]
        return rows

    def run(self, *statements: str) -> list[dict[str, Any]]:
        """Run statements; the rows of the last one."""
        self.begin(*statements)
        return self.end()

    @property
    def errors(self) -> str:
        """What it has written to stderr."""
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """End it, in order if it answers to the end of its input."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def main(data: str) -> None:
    """Run what the input says."""
    from streamql import session, sql

    spark = session(data, json.loads(os.environ["DRIVER_CONF"]))
    for line in sys.stdin:
        try:
            rows = [[row.asDict(recursive=True) for row in sql(text, spark).collect()] for text in json.loads(line)]
            answer: dict[str, Any] = {"rows": rows[-1] if rows else []}
        except Exception as e:
            answer = {"error": str(e).partition("\n\tat ")[0]}
        print(json.dumps(answer, default=str), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
