"""The extension jar: shipped in the wheel, or compiled from scala/*.scala on first use in a source checkout.

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
from collections.abc import Sequence
from pathlib import Path

from streamql.errors import StreamqlError
from streamql.extension.host import QUICK_JVM, cache_dir, java, locked, spark_home
from streamql.extension.jars import compile_jars

JAR_NAME = "streamql-extension.jar"
SHARED_DIR = Path(__file__).parent.with_name("shared")
SOURCES_DIR = Path(__file__).with_name("scala")
PACKAGED_JAR = Path(__file__).with_name(JAR_NAME)
COMPILE_SECONDS_MAX = 300


def scala_sources(directory: Path = SOURCES_DIR) -> list[Path]:
    """The sources of the jar, in a fixed order."""
    return sorted(directory.glob("*.scala"))


def resources(directory: Path = SHARED_DIR) -> list[Path]:
    """The files that go into the jar beside its classes, as /streamql/<name>."""
    return sorted([*directory.glob("*.json"), *directory.glob("*.txt")])


def fingerprint(directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR) -> str:
    """A name for what the jar is made of: its sources, resources, and the versions it is compiled against."""
    digest = hashlib.sha256()
    for package in ("pyspark", "delta-spark"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(f"{package}={importlib.metadata.version(package)}\n".encode())
    for path in [*scala_sources(directory), *resources(shared)]:
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
        classpath = compile_jars()
        with locked("extension"):
            if not jar.exists():
                print("streamql: compiling the Spark extension (once)", file=sys.stderr)
                build_jar(jar, classpath)
    return jar


def build_jar(jar: Path, classpath: Sequence[Path], directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR) -> None:
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
            for resource in resources(shared):
                archive.write(resource, f"streamql/{resource.name}")
        os.replace(built, jar)


def _build_failed(message: str, directory: Path) -> StreamqlError:
    hint = f"if you changed {directory}, correct it; if not, check `pip check`: the sources need exactly the pyspark that streamql names"
    return StreamqlError("JAR_BUILD_FAILED", message, hint=hint, path=str(directory))
