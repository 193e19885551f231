"""An S3 server for tests and benchmarks: moto's, a process of its own on a free loopback port. It keeps objects in memory."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.server_process import TestServer, has_ended, said_by, start_process

START_SECONDS_MAX = 60
ADDRESS = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")


class Server(TestServer):
    """moto's server. It honours If-None-Match on PUT and on CompleteMultipartUpload, but looks and writes in two steps: a client that
    relies on the condition goes through a `Proxy`, which lets one request of a key pass at a time.

    On Linux it dies when the thread that started it ends.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> Server:
        """Start the server on a free port."""
        with tempfile.TemporaryDirectory(prefix="s3-server-") as directory:
            log = Path(directory) / "log"
            # The log of its requests would fill the disk: nothing reads it after the start.
            self._process = start_process([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], log)
            deadline = time.monotonic() + START_SECONDS_MAX
            while (found := ADDRESS.search(said := said_by(log))) is None:
                if has_ended(self._process, deadline):
                    raise RuntimeError(f"the S3 server did not start:\n{said[-4000:]}")
            self.port = int(found[1])
        return self

    def close(self) -> None:
        """End the process, and with it the objects."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        self.put(name, b"")

    def put(self, path: str, content: bytes) -> None:
        """Make an object: its bucket, a slash, its key."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("PUT", f"/{path}", content, {"Content-Length": str(len(content))})
            answer = connection.getresponse()
            if answer.status != 200:
                raise RuntimeError(f"{path} was not made: {answer.status} {answer.read()[:500]!r}")
        finally:
            connection.close()
