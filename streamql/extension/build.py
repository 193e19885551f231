"""The extension jar: shipped in the wheel and the sdist, or compiled from scala/ on first use in a source checkout.

A jar holds a digest of the sources that it was compiled from. streamql uses a shipped jar only if the sources beside it have that
digest: a checkout with a jar of an earlier state compiles its own. Equal sources give equal jars, byte by byte.

This module is loaded by setup.py, so it imports nothing but the standard library and modules here that do the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamql.errors import StreamqlError
from streamql.extension.host import QUICK_JVM, cache_dir, java, locked, spark_home
from streamql.extension.jars import compile_jars
from streamql.shared import text_of

JAR_NAME = "streamql-extension.jar"
SHARED_DIR = Path(__file__).parent.with_name("shared")
SOURCES_DIR = Path(__file__).with_name("scala")
PACKAGED_JAR = Path(__file__).with_name(JAR_NAME)
DIGEST_ENTRY = "META-INF/streamql.sources"
"""The entry of the jar that holds the digest of its sources."""
MANIFEST = "Manifest-Version: 1.0\r\n\r\n"
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of the jar: the earliest that a zip archive can hold."""
COMPILE_SECONDS_MAX = 300


def scala_sources(directory: Path = SOURCES_DIR) -> list[Path]:
    """Returns the sources of the jar, ordered by name. To move a source into another folder changes neither the order nor the jar."""
    return sorted(directory.rglob("*.scala"), key=lambda path: (path.name, path))


def resources(directory: Path = SHARED_DIR) -> dict[str, bytes]:
    """Returns the files that go into the jar beside its classes, as /streamql/<name>, by name."""
    names = sorted(path.name for path in (*directory.glob("*.json"), *directory.glob("*.txt")))
    return {name: text_of(name, directory).encode() for name in names}


def sources_digest(directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR) -> str:
    """Digest the sources and resources of the jar: names and contents."""
    digest = hashlib.sha256()
    sources = [(path.name, path.read_bytes()) for path in scala_sources(directory)]
    for name, content in [*sources, *resources(shared).items()]:
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def fingerprint(directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR) -> str:
    """Name the state of a checkout: its sources, its resources, and the versions that they are compiled against."""
    digest = hashlib.sha256()
    for package in ("pyspark", "delta-spark"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(f"{package}={importlib.metadata.version(package)}\n".encode())
    digest.update(sources_digest(directory, shared).encode())
    return digest.hexdigest()[:16]


def is_current(jar: Path, directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR) -> bool:
    """Tell whether `jar` exists and was compiled from these sources and resources."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(DIGEST_ENTRY).decode() == sources_digest(directory, shared)
    except (OSError, KeyError, zipfile.BadZipFile):
        return False


def extension_jar() -> Path:
    """Give the jar with `streamql.Extensions`: the package's own if it is current, else the one of the cache.

    Compiles the sources into the cache if it has no jar of their state, which takes about 5 s. Raises JAR_BUILD_FAILED with the
    compiler's messages, JAVA_NOT_FOUND.
    """
    if is_current(PACKAGED_JAR):
        return PACKAGED_JAR
    jar = cache_dir() / "extension" / f"streamql-extension-{fingerprint()}.jar"
    if not jar.exists():
        classpath = compile_jars()
        with locked("extension"):
            if not jar.exists():
                print("streamql: compiling the Spark extension (once)", file=sys.stderr)
                build_jar(jar, classpath)
    return jar


def build_jar(jar: Path, classpath: Sequence[Path], directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR) -> None:
    """Compile the sources in `directory` against Spark and `classpath`, and move the whole jar into place. Raises JAR_BUILD_FAILED."""
    sources = scala_sources(directory)
    if not sources:
        raise StreamqlError("JAR_BUILD_FAILED", f"there are no Scala sources in {directory}", path=str(directory))
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=jar.parent) as scratch:
        built, classes = Path(scratch) / JAR_NAME, Path(scratch) / "classes"
        classes.mkdir()
        # scala-compiler is among pyspark's jars, so a Java runtime is all that is needed: no JDK, no build tool.
        compile_path = os.pathsep.join([str(spark_home() / "jars" / "*"), *map(str, classpath)])
        command = [str(java()), *QUICK_JVM, "-cp", compile_path, "scala.tools.nsc.Main", "-usejavacp"]
        command += ["-deprecation", "-d", str(classes), *map(str, sources)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired as e:
            raise _build_failed(f"the Scala compiler did not end in {COMPILE_SECONDS_MAX} s", directory) from e
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()
            raise _build_failed(f"the Scala sources do not compile (exit code {done.returncode}):\n{said}", directory)
        entries = {path.relative_to(classes).as_posix(): path.read_bytes() for path in classes.rglob("*.class")}
        entries |= {f"streamql/{name}": content for name, content in resources(shared).items()}
        entries[DIGEST_ENTRY] = sources_digest(directory, shared).encode()
        _write_jar(built, entries)
        os.replace(built, jar)


def _write_jar(jar: Path, entries: Mapping[str, bytes]) -> None:
    """Write the archive: its manifest first, then the entries by name, each with the same time and mode."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("META-INF/MANIFEST.MF", MANIFEST.encode()), *sorted(entries.items())):
            entry = zipfile.ZipInfo(name, ENTRY_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)


def _build_failed(message: str, directory: Path) -> StreamqlError:
    hint = f"if you changed {directory}, correct it; if not, check `pip check`: the sources need exactly the pyspark that streamql names"
    return StreamqlError("JAR_BUILD_FAILED", message, hint=hint, path=str(directory))
