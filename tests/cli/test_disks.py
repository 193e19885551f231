"""A lake on a disk that is full, or mounted read-only: what is said, what still works, and that nothing is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_process import SECONDS_MAX, command, environment

SIZE_MIB = 32

RUNNING = """
import os, sys
import streamql
spark = streamql.session(sys.argv[1])
def code(text):
    try:
        return streamql.sql(text).collect()
    except Exception as e:
        return str(e)
code("INSERT INTO t VALUES (2)")
assert [r[0] for r in code("SELECT * FROM v ORDER BY id")] == [2, 3]
disk = os.statvfs(sys.argv[1])
with open(sys.argv[2], "wb") as file:
    file.write(bytes(disk.f_bavail * disk.f_frsize))
assert [r[0] for r in code("SELECT * FROM v ORDER BY id")] == [2, 3], code("SELECT * FROM v")
said = code("INSERT INTO t VALUES (3)")
assert "No space left on device" in said, said
said = code("CREATE STREAM s ON TABLE t")  # the first: it makes the catalog
assert "rolled back due to failure during commit" in said or "No space left on device" in said, said
os.remove(sys.argv[2])
assert code("CREATE STREAM s ON TABLE t") == [], code("CREATE STREAM s ON TABLE t")
code("INSERT INTO t VALUES (3)")
assert [r["id"] for r in code("SELECT * FROM s")] == [3], code("SELECT * FROM s")
"""
"""A session that has read a table when the disk fills: what it can still do, and what it says."""


def mount(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *argv], capture_output=True, text=True, check=False)


def remount(disk: Path, how: str) -> None:
    """Mounts it in another way: as soon as the JVM of the process before has ended, which has files open there."""
    deadline = time.monotonic() + SECONDS_MAX
    while (done := mount("-o", f"remount,{how}", str(disk))).returncode != 0:
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.2)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of the test's own."""
    place = tmp_path / "disk"
    place.mkdir()
    made = mount("-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(place))
    if made.returncode != 0:
        pytest.skip(f"this user may not mount: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.spark
def test_a_read_only_disk_and_a_full_one(disk: Path) -> None:
    lake = disk / "lake"

    def run(sql: str, data: Path = lake) -> tuple[int, str, str]:
        argv = command("--data", str(data), "--output", "csv", "--continue-on-error", "-e", sql)
        done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        return done.returncode, done.stdout, done.stderr

    made = run(
        "CREATE TABLE t (id INT) TBLPROPERTIES ('change_tracking' = 'true'); "
        "INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT id + 1 AS id FROM t"
    )
    assert made[:2] == (0, ""), made

    remount(disk, "ro")
    code, out, err = run(
        "SELECT * FROM t; SELECT * FROM v; SHOW STREAMS; INSERT INTO t VALUES (2); SELECT count(*) AS n FROM t"
    )
    assert (code, out.splitlines()[:4], out.splitlines()[-2:]) == (1, ["id", "1", "id", "2"], ["n", "1"]), (out, err)
    assert err.count("error in statement") == 1, err
    assert "Read-only file system" in err
    assert run("SELECT 1", disk / "other") == (
        2,
        "",
        f"error: the data directory cannot be used: {disk}: Read-only file system\n",
    )

    remount(disk, "rw")
    filler = disk / "filler"
    with filler.open("wb") as file:
        free = os.statvfs(disk)
        file.write(bytes(free.f_bavail * free.f_frsize))
    code, out, err = run("SELECT 1")
    said = f"error: [INVALID_ARGUMENT] the disk of {lake} is full: 0 KiB of {SIZE_MIB * 1024:,} KiB are free\nhint: free space"
    assert (code, out) == (1, "")
    assert err.startswith(said)
    assert "is full" in run("SELECT 1", disk / "other")[2]
    assert not (disk / "other").exists()

    filler.unlink()
    argv = [sys.executable, "-c", RUNNING, str(lake), str(filler)]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr
