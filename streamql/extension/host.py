"""What the machine gives: a cache directory and its locks, a Java runtime, Spark's home.

setup.py comes by here, so nothing is imported but the standard library and `streamql.errors`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from streamql.errors import StreamqlError

if sys.platform != "win32":
    import fcntl

JAVA_MAJOR_MIN = 17
JAVA_NEEDED = f"Java {JAVA_MAJOR_MIN} or newer (Spark 4.2: 17, 21 and 25; Spark 4.0 and 4.1: 17 and 21)"
"""What the pages and the error say. `streamql/shared/platforms.json` has the releases by line of Spark."""
QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss8m")
"""Flags for JVMs that live for seconds: C2 and G1 never pay off, and scalac recurses deeply."""

_JAVA_HINT = (
    f"install {JAVA_NEEDED}: `apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
    "`dnf install java-17-openjdk-headless` (Fedora, RHEL) or `brew install openjdk@17` (macOS); "
    "or point JAVA_HOME at one you have"
)


def cache_dir() -> Path:
    """Returns the directory for jars that were fetched or built: $STREAMQL_CACHE, $XDG_CACHE_HOME/streamql or ~/.cache/streamql."""
    own = os.environ.get("STREAMQL_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "streamql"


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the cache's lock `name`, as `file_locked`. Raises JAR_BUILD_FAILED where the cache cannot be written."""
    directory = cache_dir()
    with contextlib.ExitStack() as held:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            held.enter_context(file_locked(directory / f".{name}.lock"))
        except OSError as e:
            raise StreamqlError(
                "JAR_BUILD_FAILED",
                f"the cache directory {directory} cannot be written: {e.strerror}",
                hint="set STREAMQL_CACHE to a directory that can be",
                path=str(directory),
            ) from e
        yield


@contextlib.contextmanager
def file_locked(path: Path) -> Iterator[None]:
    """Hold a lock file against other processes and threads; the system releases it when the process dies. Raises OSError."""
    with open(path, "w") as handle:
        # Without locks (Windows) two processes may do the same work; what they put in place is still whole.
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def java() -> Path:
    """Returns the `java` that Spark's own launcher would start: $JAVA_HOME/bin/java if JAVA_HOME is set, else the first on PATH.

    Raises JAVA_NOT_FOUND if there is none, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        found: str | None = shutil.which("java", path=str(Path(home) / "bin"))
        where = f"JAVA_HOME is {home}, but there is no bin/java in it"
    else:
        found = shutil.which("java")
        where = "there is no Java: JAVA_HOME is not set and no `java` is on PATH"
    if found is None:
        raise StreamqlError("JAVA_NOT_FOUND", where, hint=_JAVA_HINT)
    release = major(java_version(Path(found)))
    if release < JAVA_MAJOR_MIN:
        what = f"is Java {release}" if release else "does not run"
        raise StreamqlError(
            "JAVA_NOT_FOUND", f"{found} {what}; Spark needs Java {JAVA_MAJOR_MIN} or newer", hint=_JAVA_HINT, path=found
        )
    return Path(found)


def java_version(executable: Path) -> str:
    """Return the version of a `java`, as 17.0.15; empty if it does not run. The JDK's `release` file saves starting a JVM."""
    try:
        text = (executable.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
        match = re.search(r'^JAVA_VERSION="([^"]+)', text, re.MULTILINE)
    except OSError:
        match = None
    if match is None:
        try:
            out = subprocess.run([str(executable), "-version"], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        match = re.search(r'version "([^"]+)', out.stderr + out.stdout)
    return match.group(1) if match else ""


def major(version: str) -> int:
    """Returns the feature release in a version of Java: 8 for 1.8.0_392, 0 for none."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match.group(1)) if match else 0


def spark_home() -> Path:
    """Returns where Spark is: $SPARK_HOME, else the installed pyspark package (found without importing it)."""
    own = os.environ.get("SPARK_HOME")
    if own:
        return Path(own)
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise StreamqlError("JAR_BUILD_FAILED", "pyspark is not installed", hint="pip install pyspark")
    return Path(spec.origin).parent


def spark_defaults() -> dict[str, str]:
    """Returns the settings in the `spark-defaults.conf` of the Spark that spark-submit and PySpark start. Empty: it has none.

    A line is a key, white space or `=`, and a value, as of a Java properties file:
    https://spark.apache.org/docs/latest/configuration.html#dynamically-loading-spark-properties
    """
    directory = os.environ.get("SPARK_CONF_DIR")
    file = (Path(directory) if directory else spark_home() / "conf") / "spark-defaults.conf"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    named = (re.fullmatch(r"\s*([^\s#!=:][^\s=:]*)\s*[\s=:]\s*(.*?)\s*", line) for line in lines)
    return {match[1]: match[2] for match in named if match is not None}
