"""The extension jar: shipped in the wheel, or compiled from scala/*.scala on first use in a source checkout.

Also what building it needs and the rest of the package shares: the cache directory, its locks, and the Java runtime.
This module is loaded by setup.py, so it imports nothing but the standard library and `streamql.errors`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamql.errors import StreamqlError

if sys.platform != "win32":
    import fcntl

JAVA_MAJOR_MIN = 17
JAR_NAME = "streamql-extension.jar"
SOURCES_DIR = Path(__file__).with_name("scala")
PACKAGED_JAR = Path(__file__).with_name(JAR_NAME)
COMPILE_SECONDS_MAX = 300
QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss8m")
"""Flags for JVMs that live for seconds: C2 and G1 never pay off, and scalac recurses deeply."""

_JAVA_HINT = (
    "install a Java runtime, 17 or 21: `apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
    "`dnf install java-17-openjdk-headless` (Fedora, RHEL) or `brew install openjdk@17` (macOS); "
    "or point JAVA_HOME at one you have"
)


def cache_dir() -> Path:
    """The directory for jars that were fetched or built: $STREAMQL_CACHE, $XDG_CACHE_HOME/streamql or ~/.cache/streamql."""
    own = os.environ.get("STREAMQL_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "streamql"


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the cache's lock `name` against other processes and threads; the system releases it when the process dies."""
    directory = cache_dir()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = open(directory / f".{name}.lock", "w")
    except OSError as e:
        raise StreamqlError(
            "JAR_BUILD_FAILED",
            f"the cache directory {directory} cannot be written: {e.strerror}",
            hint="set STREAMQL_CACHE to a directory that can be",
            path=str(directory),
        ) from e
    with handle:
        # Without locks (Windows) two processes may do the same work; what they put in place is still whole, by os.replace.
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def java() -> Path:
    """The `java` that Spark's own launcher would start: $JAVA_HOME/bin/java if JAVA_HOME is set, else the first on PATH.

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
    major = _java_major(Path(found))
    if major < JAVA_MAJOR_MIN:
        what = f"is Java {major}" if major else "does not run"
        raise StreamqlError(
            "JAVA_NOT_FOUND", f"{found} {what}; Spark needs Java {JAVA_MAJOR_MIN} or newer", hint=_JAVA_HINT, path=found
        )
    return Path(found)


def _java_major(executable: Path) -> int:
    """The feature release of a `java`; 0 if it does not run. The JDK's `release` file is read first: it saves starting a JVM."""
    try:
        text = (executable.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
        match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    except OSError:
        match = None
    if match is None:
        try:
            out = subprocess.run([str(executable), "-version"], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return 0
        match = re.search(r'version "(?:1\.)?(\d+)', out.stderr + out.stdout)
    return int(match.group(1)) if match else 0


def spark_home() -> Path:
    """Where Spark is: $SPARK_HOME, else the installed pyspark package (found without importing it)."""
    own = os.environ.get("SPARK_HOME")
    if own:
        return Path(own)
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise StreamqlError("JAR_BUILD_FAILED", "pyspark is not installed", hint="pip install pyspark==4.2.0")
    return Path(spec.origin).parent


def scala_sources(directory: Path = SOURCES_DIR) -> list[Path]:
    """The sources of the jar, in a fixed order."""
    return sorted(directory.glob("*.scala"))


def resources(directory: Path = SOURCES_DIR) -> list[Path]:
    """Text files that go into the jar beside its classes, as /streamql/<name>: they may lie in scala/ or next to it."""
    return sorted(directory.glob("*.txt")) + sorted(directory.parent.glob("prefilter.txt"))


def fingerprint(directory: Path = SOURCES_DIR) -> str:
    """A name for what the jar is made of: its sources, resources, and the versions it is compiled against."""
    digest = hashlib.sha256()
    for package in ("pyspark", "delta-spark"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(f"{package}={importlib.metadata.version(package)}\n".encode())
    for path in [*scala_sources(directory), *resources(directory)]:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def extension_jar() -> Path:
    """The jar with `streamql.Extensions`: the wheel's own, else built into the cache (about 5 s, once for each state of the sources).

    Raises JAR_BUILD_FAILED with the compiler's messages, JAVA_NOT_FOUND.
    """
    if PACKAGED_JAR.exists():
        return PACKAGED_JAR
    jar = cache_dir() / "extension" / f"streamql-extension-{fingerprint()}.jar"
    if not jar.exists():
        from streamql.extension.jars import delta_jars  # jars.py stands on this module

        classpath = delta_jars()
        with locked("extension"):
            if not jar.exists():
                print("streamql: compiling the Spark extension (once)", file=sys.stderr)
                build_jar(jar, classpath)
    return jar


def build_jar(jar: Path, classpath: Sequence[Path], directory: Path = SOURCES_DIR) -> None:
    """Compile the sources in `directory` against Spark and `classpath` and put the jar in place whole. Raises JAR_BUILD_FAILED."""
    sources = scala_sources(directory)
    if not sources:
        raise StreamqlError("JAR_BUILD_FAILED", f"there are no Scala sources in {directory}", path=str(directory))
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=jar.parent) as scratch:
        built = Path(scratch) / JAR_NAME
        # scala-compiler is among pyspark's jars, so a Java runtime is all that is needed: no JDK, no build tool.
        compile_path = os.pathsep.join([str(spark_home() / "jars" / "*"), *map(str, classpath)])
        command = [str(java()), *QUICK_JVM, "-cp", compile_path, "scala.tools.nsc.Main", "-usejavacp"]
        command += ["-deprecation", "-d", str(built), *map(str, sources)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired as e:
            raise _build_failed(f"the Scala compiler did not end in {COMPILE_SECONDS_MAX} s", directory) from e
        if done.returncode != 0 or not built.exists():
            said = (done.stdout + done.stderr).strip()
            raise _build_failed(f"the Scala sources do not compile (exit code {done.returncode}):\n{said}", directory)
        with zipfile.ZipFile(built, "a", zipfile.ZIP_DEFLATED) as archive:
            for resource in resources(directory):
                archive.write(resource, f"streamql/{resource.name}")
        os.replace(built, jar)


def _build_failed(message: str, directory: Path) -> StreamqlError:
    hint = f"if you changed {directory}, mend it; if not, check `pip check`: the sources need exactly the pyspark that streamql names"
    return StreamqlError("JAR_BUILD_FAILED", message, hint=hint, path=str(directory))
