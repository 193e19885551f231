"""The extension jars, one for each platform: shipped in the wheel and the sdist, or compiled from scala/ on first use in a checkout.

A jar holds its platform, and a digest of the sources that it was compiled from. streamql uses a shipped jar only if the sources beside it
have that digest: a checkout with a jar of an earlier state compiles its own. Equal sources give equal jars, byte by byte.

This module is loaded by setup.py, so it imports nothing but the standard library and modules here that do the same.
"""

from __future__ import annotations

import hashlib
import json
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
from streamql.extension.platforms import Platform, described, found, line, platforms
from streamql.extension.sparks import spark_jars
from streamql.shared import text_of

SHARED_DIR = Path(__file__).parent.with_name("shared")
SOURCES_DIR = Path(__file__).with_name("scala")
SHIMS = "shims"
EXTENSION_PREFIX = "streamql-extension-"
"""What the names of the jars begin with."""
PACKAGED = Path(__file__).parent
"""Where the jars of a wheel or an sdist are."""
BUILT_ENTRY = "streamql/built.json"
"""The entry of the jar that holds its platform, which the extension checks when a session starts."""
DIGEST_ENTRY = "META-INF/streamql.sources"
"""The entry of the jar that holds the digest of its sources."""
MANIFEST = "Manifest-Version: 1.0\r\n\r\n"
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of the jar: the earliest that a zip archive can hold."""
COMPILE_SECONDS_MAX = 300


def jar_name(platform: Platform) -> str:
    """Returns the name of a platform's jar in a wheel or an sdist."""
    return f"{EXTENSION_PREFIX}{platform.name}.jar"


def scala_sources(platform: Platform, directory: Path = SOURCES_DIR) -> list[Path]:
    """Returns the sources of a platform's jar, ordered by name. The folder `shims` gives those that the platform names. To move a source
    into another folder changes neither the order nor the jar."""
    sources = [p for p in directory.rglob("*.scala") if p.parent != directory / SHIMS or p.stem in platform.shims]
    return sorted(sources, key=lambda path: (path.name, path))


def resources(directory: Path = SHARED_DIR) -> dict[str, bytes]:
    """Returns the files that go into the jar beside its classes, as /streamql/<name>, by name."""
    names = sorted(path.name for path in (*directory.glob("*.json"), *directory.glob("*.txt")))
    return {name: text_of(name, directory).encode() for name in names}


def sources_digest(platform: Platform, directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR) -> str:
    """Digest the platform, and the sources and resources of its jar: names and contents."""
    digest = hashlib.sha256(repr(platform).encode())
    sources = [(path.name, path.read_bytes()) for path in scala_sources(platform, directory)]
    for name, content in [*sources, *resources(shared).items()]:
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def is_current(jar: Path, platform: Platform, directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR) -> bool:
    """Tell whether `jar` exists and was compiled from these sources and resources for the platform."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(DIGEST_ENTRY).decode() == sources_digest(platform, directory, shared)
    except (OSError, KeyError, zipfile.BadZipFile):
        return False


def extension_jar(platform: Platform) -> Path:
    """Give the jar with `streamql.Extensions` for a platform: the package's own if it is current, else the one of the cache.

    Compiles the sources into the cache if it has no jar of their state, which takes about 5 s. Raises JAR_BUILD_FAILED with the
    compiler's messages, JAVA_NOT_FOUND.
    """
    packaged = PACKAGED / jar_name(platform)
    if is_current(packaged, platform):
        return packaged
    spark = found()[0] if _is_installed(platform) else platform.spark_version
    jar = cache_dir() / "extension" / f"{EXTENSION_PREFIX}{platform.name}-{spark}-{sources_digest(platform)[:16]}.jar"
    if not jar.exists():
        classpath = compile_jars(platform)
        with locked("extension"):
            if not jar.exists():
                print("streamql: compiling the Spark extension (once)", file=sys.stderr)
                build_jar(jar, platform, classpath)
    return jar


def chosen_platforms() -> list[Platform]:
    """Returns the platforms whose jars a wheel or an sdist gets: those that STREAMQL_PLATFORMS names, with commas between, else all.

    Raises JAR_BUILD_FAILED for an unknown name.
    """
    named = [name for part in os.environ.get("STREAMQL_PLATFORMS", "").split(",") if (name := part.strip())]
    unknown = [name for name in named if name not in [p.name for p in platforms()]]
    if unknown:
        raise StreamqlError(
            "JAR_BUILD_FAILED", f"no such platform: {unknown[0]}", hint=", ".join(p.name for p in platforms())
        )
    return [p for p in platforms() if not named or p.name in named]


def classes_of_spark(platform: Platform) -> str:
    """Returns the class path of the Spark that a platform's jar is compiled against: the installed one, if it is of the line, else a
    fetched one. Raises JAR_BUILD_FAILED."""
    return str((spark_home() / "jars" if _is_installed(platform) else spark_jars(platform.spark_version)) / "*")


def _is_installed(platform: Platform) -> bool:
    return line(found()[0]) == platform.spark


def build_jar(
    jar: Path, platform: Platform, classpath: Sequence[Path], directory: Path = SOURCES_DIR, shared: Path = SHARED_DIR
) -> None:
    """Compile the sources in `directory` against the platform's Spark and `classpath`, and move the whole jar into place. Raises
    JAR_BUILD_FAILED."""
    sources = scala_sources(platform, directory)
    if not sources:
        raise StreamqlError("JAR_BUILD_FAILED", f"there are no Scala sources in {directory}", path=str(directory))
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=jar.parent) as scratch:
        built, classes = Path(scratch) / jar.name, Path(scratch) / "classes"
        classes.mkdir()
        # scala-compiler is among pyspark's jars, so a Java runtime is all that is needed: no JDK, no build tool.
        compile_path = os.pathsep.join([classes_of_spark(platform), *map(str, classpath)])
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
        entries[BUILT_ENTRY] = json.dumps(
            {"spark": platform.spark, "oldest": platform.oldest, "delta": platform.delta, "known": described()}
        ).encode()
        entries[DIGEST_ENTRY] = sources_digest(platform, directory, shared).encode()
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
    hint = f"if you changed {directory}, correct it; if not, install a release of streamql: its wheel has the jars"
    return StreamqlError("JAR_BUILD_FAILED", message, hint=hint, path=str(directory))
