"""How an orchestrator reaches streamql: a data directory, or a server by its URL. Each call runs the command `streamql` in a process of its
own, so no JVM starts in an orchestrator's process. The command may be that of another environment."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamql.dialect import quote_string
from streamql.errors import ERROR_CLASSES, StreamqlError
from streamql.integrations.process import Child, Ended, Line, Show, no_show, run, run_async
from streamql.integrations.results import Backlog, Consumption, Run

COMMAND = (sys.executable, "-m", "streamql")
LOOK_SECONDS_MAX = 300.0
"""How long a look at streams may take. A start of Spark takes seconds, and longer on a busy machine."""

RUN_NAME = re.compile(r"[\w.:/+@~=-]+")
CANCELLED = 130

_ERROR = re.compile(r"^error(?: in [^\n]*?)?: (?:\[([A-Z][A-Z0-9_.]*)\] )?(.*)", re.MULTILINE | re.DOTALL)
_HINT = re.compile(r"^hint: (.*)$", re.MULTILINE)

PASSING = frozenset(("STREAM_BUSY", "STREAM_MOVED", "CLAIM_LOST", "KAFKA_UNREACHABLE", "INTERNAL_ERROR", "RUN_FAILED"))
"""Codes of errors that may be gone when a look is repeated. RUN_FAILED: the process ended without saying why, or took too long."""


@dataclass(frozen=True)
class Streamql:
    """How a streamql is reached: by `data`, a data directory, or by `connect`, the URL of `streamql server --connect`.

    `conf`: settings of the session over a data directory; the command line of the process shows them, so secrets belong into its
    environment. `database`: the current schema; empty: the default one. `lake`: what tables of this lakehouse are called after in an
    orchestrator. `command`: the words that start streamql, such as the path of another environment's `streamql`.
    """

    data: str = ""
    connect: str = field(default="", repr=False)
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    database: str = ""
    lake: str = "lake"
    command: Sequence[str] = COMMAND

    def __post_init__(self) -> None:
        """Raises INVALID_ARGUMENT unless one of `data` and `connect` is given."""
        if bool(self.data) == bool(self.connect):
            raise StreamqlError(
                "INVALID_ARGUMENT",
                f"{'both' if self.data else 'neither'} of data and connect {'are' if self.data else 'is'} given",
                hint="data='/srv/lake' for a data directory, or connect='sc://host:15002' for a server",
            )
        if self.connect and self.conf:
            raise StreamqlError(
                "INVALID_ARGUMENT",
                "conf is given with connect, and the settings of a server are its own",
                hint="SET in the script, or settings of streamql server",
            )
        if self.data and not Path(self.data).is_absolute():
            raise StreamqlError(
                "INVALID_ARGUMENT",
                f"the data directory {self.data} is not an absolute path, and an orchestrator's processes run anywhere",
                hint="data='/srv/lake'",
            )

    # -- streams

    def has_data(self, streams: Sequence[str]) -> dict[str, bool]:
        """Returns for each stream whether a statement has something to consume. Raises STREAM_NOT_FOUND, and what reading a stream
        raises."""
        return _answers(streams, self._look(_has_data_query(streams)))

    async def has_data_async(self, streams: Sequence[str]) -> dict[str, bool]:
        """Returns the same, without blocking the event loop."""
        return _answers(streams, await self._look_async(_has_data_query(streams)))

    def backlogs(self, streams: Sequence[str]) -> tuple[Backlog, ...]:
        """Returns what statements would consume of each stream. Raises what `has_data` raises."""
        by_name = {row["stream"]: row for row in self._look(_backlog_query(streams))}
        return tuple(_backlog(stream, by_name[stream]) for stream in streams)

    def _look(self, query: str) -> list[dict[str, Any]]:
        try:
            return _rows(run(self._line("--output", "json", "-e", query), LOOK_SECONDS_MAX))
        except TimeoutError as e:
            raise StreamqlError("RUN_FAILED", str(e), hint="look again, or use a server") from None

    async def _look_async(self, query: str) -> list[dict[str, Any]]:
        try:
            return _rows(await run_async(self._line("--output", "json", "-e", query), LOOK_SECONDS_MAX))
        except TimeoutError as e:
            raise StreamqlError("RUN_FAILED", str(e), hint="look again, or use a server") from None

    # -- scripts

    def start(self, *, script: str | Path = "", sql: str = "", name: str) -> Script:
        """Starts a script: the file `script`, or the text `sql`. `name`: of the run, in the ledger. An attempt that repeats a run has its
        name. Raises INVALID_ARGUMENT."""
        if bool(script) == bool(sql):
            raise StreamqlError(
                "INVALID_ARGUMENT",
                f"{'both' if script else 'neither'} of script and sql {'are' if script else 'is'} given",
                hint="script='/srv/merge.sql', or sql='MERGE INTO …'",
            )
        if not RUN_NAME.fullmatch(name):
            raise StreamqlError(
                "INVALID_ARGUMENT",
                f"{name!r} is not a name of a run",
                hint="use letters, digits, and . : / + @ ~ = _ -",
            )
        return Script(self, str(script), sql, name)

    def run_script(
        self, *, script: str | Path = "", sql: str = "", name: str, show: Show = no_show, show_error: Show | None = None
    ) -> Run:
        """Runs a script to its end, and returns what the run consumed. Raises what `Script.wait` raises."""
        return self.start(script=script, sql=sql, name=name).wait(show, show_error)

    def _line(self, *words: str, text: str = "", name: str = "") -> Line:
        """Returns a command line. The URL of a server is in the environment, because it may have a token."""
        variables = {"STREAMQL_CONNECT": self.connect, "STREAMQL_RUN": name, "STREAMQL_DATABASE": self.database}
        place = ["--data", self.data] if self.data else []
        settings = [word for key, value in self.conf.items() for word in ("--conf", f"{key}={value}")]
        return Line([*self.command, *place, *settings, *words], variables, text)


class Script:
    """A script that runs."""

    def __init__(self, streamql: Streamql, script: str, sql: str, name: str) -> None:
        self.name = name
        self._directory = tempfile.TemporaryDirectory(prefix="streamql-run-")
        self._consumptions = Path(self._directory.name) / "consumptions.jsonl"
        self._began = time.monotonic()
        words = ("--consumptions", str(self._consumptions), "-f", script or "-")
        try:
            self._child = Child(streamql._line(*words, text=sql, name=name))
        except BaseException:
            self._directory.cleanup()
            raise

    def interrupt(self) -> None:
        """Cancels it, as Ctrl-C does: its statement has then committed and moved its streams, or done neither. Returns at once."""
        self._child.interrupt()

    def wait(self, show: Show = no_show, show_error: Show | None = None) -> Run:
        """Waits for its end. `show`: called with each line of output; `show_error`: with each line of notes, warnings and errors.

        Raises the error of the statement that failed, by its code if the code is one of streamql's; else RUN_FAILED. Statements before that
        one have committed.
        """
        with self._directory:
            ended = self._child.wait(show, show_error or show)
            if ended.code:
                raise failure(ended)
            lines = self._consumptions.read_text(encoding="utf-8").splitlines()
            return Run(self.name, time.monotonic() - self._began, tuple(map(Consumption.of, lines)))


def failure(ended: Ended) -> StreamqlError:
    """Returns the error of a command that has failed, in its own words."""
    found = _ERROR.search(ended.err)
    if ended.code == CANCELLED or ended.code < 0:
        how = "was cancelled" if ended.code == CANCELLED else f"was ended by signal {-ended.code}"
        return StreamqlError(
            "RUN_FAILED",
            f"the command {how}; the statement that ran has committed and moved its streams, or has done neither",
            hint="run it again",
            exit_code=ended.code,
        )
    if found is None:
        last = ended.err.strip()[-2000:] or "it said nothing"
        return StreamqlError(
            "RUN_FAILED", f"the command ended with exit code {ended.code}: {last}", exit_code=ended.code
        )
    code, message = found.group(1), found.group(0).strip()
    hint = _HINT.search(message)
    is_ours = code in ERROR_CLASSES
    words = re.sub(r"\n+", "\n", _HINT.sub("", found.group(2) if is_ours else message))
    return StreamqlError(
        code if is_ours else "RUN_FAILED",
        words.strip(),
        hint=hint.group(1) if hint else "",
        exit_code=ended.code,
        condition=code,
    )


def is_passing(error: StreamqlError) -> bool:
    """Returns whether the same look at a stream may succeed later: its server does not answer, or another statement holds it."""
    return error.code in PASSING or "no server answers" in error.message


def _rows(ended: Ended) -> list[dict[str, Any]]:
    """Returns the rows that a query printed. Raises its error."""
    if ended.code:
        raise failure(ended)
    return [json.loads(line) for line in ended.out.splitlines() if line.startswith("{")]


def _named(streams: Sequence[str]) -> Sequence[str]:
    """Returns the streams. Raises INVALID_ARGUMENT if there are none."""
    if not streams or not all(streams):
        raise StreamqlError("INVALID_ARGUMENT", "no stream is named", hint="streams=['demo.orders_stream']")
    return streams


def _has_data_query(streams: Sequence[str]) -> str:
    columns = (f"stream_has_data({quote_string(name)}) AS s{i}" for i, name in enumerate(_named(streams)))
    return f"SELECT {', '.join(columns)}"


def _answers(streams: Sequence[str], rows: list[dict[str, Any]]) -> dict[str, bool]:
    (row,) = rows
    return {name: bool(row[f"s{i}"]) for i, name in enumerate(streams)}


def _backlog_query(streams: Sequence[str]) -> str:
    each = (
        f"SELECT {quote_string(name)} AS stream, * FROM stream_backlog({quote_string(name)})"
        for name in _named(streams)
    )
    return " UNION ALL ".join(each)


def _backlog(stream: str, row: Mapping[str, Any]) -> Backlog:
    def end(name: str) -> int | str | None:
        version, position = row[f"{name}_version"], row[f"{name}_position"]
        return position if version is None else int(version)

    return Backlog(stream, row["has_data"], end("from"), end("through"), row["rows_added"], row["rows_removed"])
