"""Runs command lines of dbt, each in a fork of one process that has imported dbt: `python -m tests.frontends.dbt_runner`.

Importing dbt takes longer than most of its commands. A request is a line of JSON on standard input (`Request`), its answer a line with
the exit code.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace

from tests.frontends.support import SECONDS_MAX, environment

POLL_SECONDS = 0.05
"""dbt-spark polls a statement once a second at best (`poll_interval`, an integer): a run of twenty statements of tenths would wait for
twenty seconds."""


@dataclass(frozen=True)
class Request:
    """A command line, what is added to the environment, and the directory to work in, which gets the output: files `out` and `err`."""

    argv: list[str]
    variables: dict[str, str]
    directory: str


class DbtRunner:
    """The process that forks, for as long as the context lasts."""

    def __enter__(self) -> DbtRunner:
        line = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(
            line, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its input ends it

    def run(self, argv: list[str], variables: dict[str, str], directory: Path) -> subprocess.CompletedProcess[str]:
        """Runs a command line of dbt; its exit code and output."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(Request(argv, variables, str(directory)))) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        out, err = ((directory / name).read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess(argv, int(answer), out, err)


def poll_often() -> None:
    """Makes dbt-spark wait less between two looks at a statement."""
    from dbt.adapters.spark import connections

    vars(connections)["time"] = SimpleNamespace(
        time=time.time, sleep=lambda seconds: time.sleep(min(seconds, POLL_SECONDS))
    )


def forked(request: Request) -> int:
    """The exit code of a command line of dbt, run in a fork of this process."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    signal.alarm(2 * SECONDS_MAX)  # ends the fork, if dbt does not end by itself
    try:
        os.chdir(request.directory)
        os.environ.update(request.variables)
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
        code = run_dbt(request.argv)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_dbt(argv: list[str]) -> int:
    """Runs dbt's own `main`; the exit code that it asks for."""
    from dbt.cli.main import cli

    sys.argv = ["dbt", *argv]
    try:
        cli()
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else int(e.code is not None)
    return 0


def main() -> None:
    """Answers requests until standard input ends."""
    import dbt.adapters.spark
    import dbt.cli.main  # noqa: F401 - each fork finds it imported

    poll_often()
    for line in sys.stdin:
        print(forked(Request(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
