"""Class data archives: the classes of a start, parsed and verified once, mapped from a file at later starts (JEP 350, dynamic archives).

A start loads some 20,000 classes from the jars of Spark, which is half of its time. `streamql prepare` lets one JVM write them down as
it ends. The JVM itself checks whether an archive is of its own build and of these jars; it ignores another one silently.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamql.extension.host import cache_dir

WRITE = "-XX:ArchiveClassesAtExit="
_USE = "-XX:SharedArchiveFile="
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
SUFFIX = ".jsa"
TOUCH_SECONDS_MIN = 7 * 24 * 3600
"""So old an archive is marked as used when it is: seldom, since where a cache is a layer of an image that copies it."""
UNFINISHED_SECONDS_MAX = 3600
UNUSED_SECONDS_MAX = 30 * 24 * 3600
"""An archive is 220 MB: one of jars that are no longer used is removed when the next is made."""


def path_of(java: Path, classpath: str) -> Path:
    """Returns where the archive for this Java and this class path is, or would be; it is named by what goes into it."""
    digest = hashlib.sha256(str(java.resolve()).encode())
    for file in (java.resolve().parent.parent / "release", *_files(classpath)):
        with contextlib.suppress(OSError):
            looked = file.stat()
            # Whole seconds, as the JVM compares them: a layer of an image keeps no more.
            digest.update(f"\n{file} {looked.st_size} {int(looked.st_mtime)}".encode())
    return cache_dir() / "classes" / f"{digest.hexdigest()[:16]}{SUFFIX}"


def options(java: Path, classpath: str, given: Sequence[str]) -> list[str]:
    """Returns the JVM options that use the archive, if it was made and the options `given` name none themselves."""
    if any(option.startswith((WRITE, _USE, "-Xshare")) for option in given):
        return []
    archive = path_of(java, classpath)
    try:
        age_seconds = time.time() - archive.stat().st_mtime
    except OSError:
        return []
    if age_seconds > TOUCH_SECONDS_MIN:
        with contextlib.suppress(OSError):  # a cache that is another user's, or read-only
            os.utime(archive)
    return [f"{_USE}{archive}", *_QUIET]


def remove_unused(directory: Path) -> None:
    """Removes archives that no start has used for a month, or that were never finished."""
    for archive in directory.iterdir():
        seconds_max = UNUSED_SECONDS_MAX if archive.suffix == SUFFIX else UNFINISHED_SECONDS_MAX
        with contextlib.suppress(OSError):
            if time.time() - archive.stat().st_mtime > seconds_max:
                archive.unlink()


def _files(classpath: str) -> Iterator[Path]:
    for part in classpath.split(os.pathsep):
        path = Path(part)
        if path.name == "*":
            yield from sorted(path.parent.glob("*.jar"))
        else:
            yield path
