"""`streamql watch` at a real terminal of 80 columns, and `has-data` as a process: what a script sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.consume.support import ROOT, data_of, fresh_schema, run, tracked_table
from tests.small import SHORT_LIVED_ARGUMENTS

SECONDS_MAX = 300


@pytest.mark.spark
def test_watch_at_80_columns(spark: SparkSession, tmp_path: Path) -> None:
    schema = fresh_schema(spark, "terminal")
    tracked_table(spark, 10)
    spark.sql("USE default")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    argv = [sys.executable, "-m", "streamql", "--data", data_of(spark), *SHORT_LIVED_ARGUMENTS]
    process = subprocess.Popen(
        [*argv, "--conf", "spark.master=local[1]", "--database", schema, "watch", "--every", "500ms"],
        cwd=ROOT,
        env=os.environ | {"TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    said: list[str] = []

    def listen() -> None:
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # how Linux says that the other side of a terminal is closed
                return
            if not more:
                return
            said.append(more.decode(errors="replace"))

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while f"{schema}.s" not in "".join(said) and time.monotonic() < deadline:
            time.sleep(0.2)
        run(spark, f"INSERT INTO {schema}.t VALUES (99, 99)")
        while "2 v" not in "".join(said) and time.monotonic() < deadline:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    listener.join(10)
    os.close(ours)
    text = "".join(said)
    assert (process.returncode, err) == (0, b"")
    assert text.index("1 v") < text.index("2 v")  # it saw the change
    assert text.startswith("\x1b[?1049h")
    assert text.endswith("\x1b[?25h\x1b[?1049l")  # the cursor is back, and so is the screen from before
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "\n", text))
    assert max(map(len, lines)) <= 80
