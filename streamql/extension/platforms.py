"""Platforms: the pairs of Spark and Delta Lake that the extension has a jar for, and the one that is there.

`streamql/shared/platforms.json` is the table. A row is a line of Spark, such as 4.1. It has the version that the tests run on, the oldest
one, and the feature releases of Java. It has the Delta Lakes; the first one is fetched if there is none. One that does not run on the row's
version names another one as `spark`. A row names the files of `scala/shims` that the jar is compiled from, and the versions of what
connectors need. This module imports nothing of Spark or Delta, and setup.py loads it.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from streamql.errors import StreamqlError
from streamql.extension.host import java, java_version, major, spark_home
from streamql.shared import text_of

NO_DELTA = "none"
"""What an error names as the version of Delta Lake if there is none."""
DELTA_SETTINGS = ("spark.driver.extraClassPath", "spark.jars", "spark.jars.packages")
"""Spark's settings that may name a Delta Lake."""
_DELTA = re.compile(r"[^,\s:]*\bdelta-spark(?:_\d+\.\d+)?(?:_2\.13)?(?:[-:](?P<version>\d+(?:\.\d+)+)|\.jar\b)")
"""A file such as delta-spark_4.1_2.13-4.4.0.jar, coordinates such as io.delta:delta-spark_2.13:4.0.0, or a platform's delta-spark.jar."""


@dataclass(frozen=True)
class Platform:
    """A pair of Spark and Delta Lake.

    `spark`, `delta`: the lines, such as 4.1 and 4.4. `spark_version`, `delta_version`: those that the tests run on. `oldest`: of Spark.
    `java`: feature releases. `delta_jars`: Maven coordinates. `shims`: names of files in `scala/shims`, without their ending. `kafka`,
    `s3`: the versions of what these connectors need; of S3 also more Maven coordinates.
    """

    spark: str
    spark_version: str
    oldest: str
    java: tuple[int, ...]
    delta: str
    delta_version: str
    delta_jars: tuple[str, ...]
    shims: tuple[str, ...]
    kafka: Mapping[str, str]
    s3: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Returns the name of the platform, such as spark4.1-delta4.4."""
        return f"spark{self.spark}-delta{self.delta}"


@cache
def platforms() -> tuple[Platform, ...]:
    """Returns all platforms, by Spark; of one Spark, the one with the newest Delta Lake comes first."""
    rows: Mapping[str, Any] = json.loads(text_of("platforms.json"))
    return tuple(
        Platform(
            spark=spark,
            spark_version=own.get("spark", row["version"]),
            oldest=row["oldest"],
            java=tuple(row["java"]),
            delta=delta,
            delta_version=own["version"],
            delta_jars=tuple(f"io.delta:{jar}:{own['version']}" for jar in own["jars"]),
            shims=("Shim", *row["shims"], *own["shims"]),
            kafka=row["kafka"],
            s3=row["s3"],
        )
        for spark, row in rows.items()
        for delta, own in row["delta"].items()
    )


def described() -> str:
    """Returns all platforms in words: `Spark 4.0 with Delta Lake 4.4 or 4.0, Spark 4.1 with …`."""
    deltas: dict[str, list[str]] = {}
    for platform in platforms():
        deltas.setdefault(platform.spark, []).append(platform.delta)
    return ", ".join(f"Spark {spark} with Delta Lake {' or '.join(of)}" for spark, of in deltas.items())


def current(delta: str | None = None) -> Platform:
    """Returns the platform of this Python. `delta`: the version of a Delta Lake that settings name; None: they name none.

    Raises SPARK_NOT_SUPPORTED, JAVA_NOT_FOUND for a Java that its Spark cannot use, JAR_BUILD_FAILED if there is no Spark.
    """
    spark, own = found()
    platform = find(spark, delta or own)
    check_java(platform)
    return platform


def unsupported() -> StreamqlError | None:
    """Returns the error of `current`; None: the Spark is supported, or there is none."""
    try:
        find(*found())
    except StreamqlError as e:
        return e if e.code == "SPARK_NOT_SUPPORTED" else None
    return None


def found() -> tuple[str, str | None]:
    """Returns the versions of the Spark that a session starts and of its Delta Lake: the one among Spark's jars, else the one of the Python
    package delta-spark. None: there is none, so streamql brings one."""
    spark = _version_of_jar("spark-core_*.jar") or package_version("pyspark") or "unknown"
    return spark, _version_of_jar("delta-spark_*.jar") or package_version("delta-spark")


def given_delta(settings: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the setting that names a Delta Lake among jars, and its version. None: no setting names one, or its version is not known."""
    for key in DELTA_SETTINGS:
        for named in _DELTA.finditer(settings.get(key, "")):
            own = named["version"] or _version_in(Path(named[0]))
            if own is not None:
                return key, own
    return None


def find(spark: str, delta: str | None) -> Platform:
    """Returns the platform of two versions. `delta`: None stands for the newest one. Raises SPARK_NOT_SUPPORTED."""
    of_spark = [p for p in platforms() if p.spark == line(spark) and _number(spark) >= _number(p.oldest)]
    match = [p for p in of_spark if delta is None or p.delta == line(delta)]
    if match:
        return match[0]
    near = of_spark[0] if of_spark else platforms()[-1]
    install = f"--no-deps delta-spark=={near.delta_version}" if of_spark else f"pyspark=={near.spark_version}"
    raise StreamqlError(
        "SPARK_NOT_SUPPORTED",
        f"this is Spark {spark} with Delta Lake {delta or NO_DELTA}; streamql runs on {described()}",
        hint=f"pip install {install}; or use another Spark, with the settings that `streamql conf` prints",
        spark=spark,
        delta=delta,
    )


def check_java(platform: Platform) -> None:
    """Raises JAVA_NOT_FOUND if the Java that would start cannot run the Spark of a platform."""
    executable = java()
    found_major = major(java_version(executable))
    if found_major > max(platform.java):
        raise StreamqlError(
            "JAVA_NOT_FOUND",
            f"{executable} is Java {found_major}; Spark {platform.spark} runs on Java {' or '.join(map(str, platform.java))}",
            hint="point JAVA_HOME at one of these; or use a newer Spark",
            path=str(executable),
        )


def brings_delta() -> bool:
    """Returns whether Spark's own directory of jars has Delta Lake, as on a managed platform."""
    return _version_of_jar("delta-spark_*.jar") is not None


def line(version: str) -> str:
    """Returns the line of a version: 4.2 for 4.2.1."""
    return ".".join(version.split(".")[:2])


def release(version: str) -> str:
    """Returns a version without what a platform adds to it: 4.0.2 for 4.0.2-amzn-0."""
    return ".".join(map(str, _number(version)))


def package_version(name: str) -> str | None:
    """Returns the version of a Python package; None: it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _version_in(jar: Path) -> str | None:
    """Returns the version in the manifest of a jar; None: there is no such file, or none in it."""
    try:
        with zipfile.ZipFile(jar) as archive:
            manifest = archive.read("META-INF/MANIFEST.MF").decode("utf-8", "replace")
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    named = re.search(r"^Implementation-Version: *(\d\S*)", manifest, re.MULTILINE)
    return named[1] if named else None


def _version_of_jar(pattern: str) -> str | None:
    """Returns the version in the name of one of Spark's jars, such as 4.1.2 of spark-core_2.13-4.1.2.jar."""
    try:
        names = [Path(jar).stem for jar in sorted((spark_home() / "jars").glob(pattern))]
    except StreamqlError:
        return None
    return next((match[1] for name in reversed(names) if (match := re.search(r"_2\.13-(\d[\w.]*)", name))), None)
