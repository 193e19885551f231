"""The versions of Spark and Delta Lake that the extension is made for, and those that are there. Nothing of either is imported."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from streamql.errors import StreamqlError, of_catalogue
from streamql.extension.host import spark_home
from streamql.shared import constants

SPARK = constants("versions")["spark"]
DELTA = constants("versions")["delta"]


def unsupported() -> StreamqlError | None:
    """Returns the error for another Spark or Delta Lake than the supported one; None: they are supported, or not found."""
    sparks = [found for found in (package_version("pyspark"), _version_of_home()) if found is not None]
    other = next((found for found in sparks if not is_supported(found, SPARK)), None)
    delta = package_version("delta-spark") or DELTA  # if it is not installed, it is only jars, which are streamql's own
    if other is None and is_supported(delta, DELTA):
        return None
    facts = {"foundSpark": other or SPARK, "foundDelta": delta, "spark": SPARK, "delta": DELTA}
    return of_catalogue("SPARK_NOT_SUPPORTED", "VERSIONS", facts)


def is_supported(found: str, needed: str) -> bool:
    """Returns whether a version is of the same minor release as the needed one: 4.2.1 as 4.2.0."""
    return found.split(".")[:2] == needed.split(".")[:2]


def package_version(name: str) -> str | None:
    """Returns the version of a Python package; None: it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _version_of_home() -> str | None:
    """Returns the version of the Spark that a session starts, which SPARK_HOME may name; None: it is not known."""
    try:
        found = sorted((spark_home() / "jars").glob("spark-core_*.jar"))
    except StreamqlError:
        return None
    return found[-1].stem.split("-")[2] if found else None
