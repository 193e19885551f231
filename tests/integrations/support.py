"""The flights lakehouse that orchestrators consume in tests, and a server over it that a test can unplug."""

from __future__ import annotations

import re
import socket
import sys
import time
from pathlib import Path

from examples.flights import data
from streamql.integrations.client import Streamql
from streamql.integrations.process import Line, run
from tests.server_process import TestServer, has_ended, said_by, start_process
from tests.small import INTERPRETED, SHORT_LIVED

ROOT = Path(__file__).resolve().parents[2]
FLIGHTS = ROOT / "examples" / "flights"
FLIGHTS_A_MONTH = 500
SECONDS_MAX = 600
CONF = {"spark.master": "local[2]", **SHORT_LIVED, **dict(INTERPRETED)}
COMMAND = (sys.executable, "-m", "streamql")

REPLICA_STREAM, DELAYS_STREAM = "default.flights_to_replica", "default.flights_to_delays"
MISSING = (
    "SELECT count(*) AS n FROM (TABLE flights EXCEPT ALL TABLE flights_replica) "
    "UNION ALL SELECT count(*) FROM (TABLE flights_replica EXCEPT ALL TABLE flights)"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class Server(TestServer):
    """`streamql server --connect` over a directory, at one port each time that it starts."""

    def __init__(self, directory: Path) -> None:
        self.lake = directory / "lake"
        self._log = directory / "server.log"
        self._port = free_port()
        self.streamql = Streamql(connect=f"sc://127.0.0.1:{self._port}", command=COMMAND)

    def start(self) -> Server:
        after = len(said_by(self._log))
        conf = [word for key, value in CONF.items() for word in ("--conf", f"{key}={value}")]
        listening = ("server", "--port", "0", "--connect", "--connect-port", str(self._port))
        self._process = start_process([*COMMAND, "--data", str(self.lake), *conf, *listening], self._log, ROOT)
        deadline = time.monotonic() + SECONDS_MAX
        while not re.search(r"ready: .*sc://", said_by(self._log, after)):
            if has_ended(self._process, deadline):
                raise RuntimeError(said_by(self._log, after))
        return self

    def close(self) -> None:
        """Unplugs it: no statement is asked to end."""
        if hasattr(self, "_process") and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def set_up(self) -> None:
        """Makes the tables and the streams, and loads January."""
        for number in ("01_tables", "02_streams"):
            self.streamql.run_script(script=FLIGHTS / f"{number}.sql", name="set-up")
        self.load(1)

    def load(self, month: int) -> None:
        """Loads some flights of a month into the source of the streams."""
        lines = data.months(data.flights_archive())[month][: FLIGHTS_A_MONTH + 1]
        data.deliver(lines, self.lake / "warehouse" / "landing", month)
        self.streamql.run_script(script=FLIGHTS / "03_load_month.sql", name="load")

    def rows(self, query: str) -> str:
        """What a query prints, as CSV without a header."""
        variables = {"STREAMQL_CONNECT": self.streamql.connect}
        ended = run(Line([*COMMAND, "--output", "csv", "-e", query], variables), SECONDS_MAX)
        assert ended.code == 0, ended.err
        return "\n".join(ended.out.splitlines()[1:])

    def offset(self, stream: str = REPLICA_STREAM) -> str:
        return self.rows(f"SELECT offset_version FROM streamql.streams WHERE name = '{stream}'")
