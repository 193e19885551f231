"""Sparks that are not installed: their jars, which the jars of a wheel are compiled against."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from streamql.errors import StreamqlError
from streamql.extension.host import cache_dir, locked

FETCH_SECONDS_MAX = 1800


def spark_jars(version: str) -> Path:
    """Returns the directory of the jars of PySpark's release `version`, from the cache or else by pip: 430 MB.

    Raises JAR_BUILD_FAILED with what pip said.
    """
    jars = cache_dir() / "sparks" / version
    if jars.is_dir():
        return jars
    with locked("sparks"):
        if not jars.is_dir():
            print(f"streamql: fetching PySpark {version} to compile against (once)", file=sys.stderr)
            jars.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=jars.parent) as scratch:
                os.replace(_unpacked(_downloaded(version, Path(scratch)), Path(scratch)), jars)
    return jars


def _downloaded(version: str, scratch: Path) -> Path:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--dest",
        str(scratch),
    ]
    try:
        done = subprocess.run(
            [*pip, f"pyspark=={version}"], capture_output=True, text=True, timeout=FETCH_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired as e:
        raise _failed(version, f"pip did not end in {FETCH_SECONDS_MAX} s") from e
    archive = next(scratch.glob("pyspark-*.tar.gz"), None)
    if done.returncode != 0 or archive is None:
        raise _failed(version, (done.stdout + done.stderr).strip())
    return archive


def _unpacked(archive: Path, scratch: Path) -> Path:
    """Returns the directory of jars. An archive of PySpark has them in deps/jars."""
    jars = scratch / "jars"
    jars.mkdir()
    with tarfile.open(archive) as members:
        for member in members:
            path = Path(member.name)
            if member.isfile() and path.suffix == ".jar" and path.parts[1:3] == ("deps", "jars"):
                content = members.extractfile(member)
                assert content is not None  # of a file
                (jars / path.name).write_bytes(content.read())
    return jars


def _failed(version: str, said: str) -> StreamqlError:
    hint = (
        "check the network; or set STREAMQL_PLATFORMS to the platforms that are to be built, such as spark4.2-delta4.4"
    )
    return StreamqlError(
        "JAR_BUILD_FAILED", f"PySpark {version} could not be fetched:\n{said}", hint=hint, version=version
    )
