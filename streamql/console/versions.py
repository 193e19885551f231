"""The versions of all that runs a statement, found without starting Java."""

from __future__ import annotations

import platform


def version_line() -> str:
    """Returns one line: streamql, Spark, Delta Lake, Scala, Java and Python. A second one if it does not run on them."""
    from streamql.extension.platforms import NO_DELTA, find, found, unsupported

    refused = unsupported()
    spark, own = found()
    delta = own or (NO_DELTA if refused else find(spark, None).delta_version)
    problem = "" if refused is None else f"\nnot supported: {refused.message}\nhint: {refused.hint}"
    parts = {
        "Spark": spark,
        "Delta Lake": delta,
        "Scala": _scala(),
        "Java": _java(),
        "Python": platform.python_version(),
    }
    own = _package("streamql", missing="0.0.0")
    return f"streamql {own} ({', '.join(f'{name} {found}' for name, found in parts.items())}){problem}"


def _package(name: str, missing: str = "not installed") -> str:
    from streamql.extension.platforms import package_version

    return package_version(name) or missing


def _scala() -> str:
    """Returns the version of the Scala library among Spark's jars."""
    from streamql.errors import StreamqlError
    from streamql.extension.host import spark_home

    try:
        found = sorted((spark_home() / "jars").glob("scala-library-*.jar"))
    except StreamqlError:
        found = []
    return found[-1].stem.removeprefix("scala-library-") if found else "not found"


def _java() -> str:
    """Returns the version of the Java that a session would start."""
    from streamql.errors import StreamqlError
    from streamql.extension.host import java, java_version

    try:
        return java_version(java())
    except StreamqlError as e:
        return f"not usable: {e.message}"
