"""`streamql spark-sql`: Spark's own bin/spark-sql, with the extension, over the data directory."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from streamql.cli.commands.launching import joined_settings, settings
from streamql.console.options import Options

_LIST_OPTIONS = {"--jars": "spark.jars", "--driver-class-path": "spark.driver.extraClassPath"}
"""Options of spark-submit that set what ours set too: the last one would win."""


def run(options: Options) -> int:
    """Becomes bin/spark-sql; does not return. Raises JAVA_NOT_FOUND, JAR_BUILD_FAILED, INVALID_ARGUMENT."""
    from streamql.extension import class_data
    from streamql.extension.host import java, spark_home
    from streamql.extension.jvm import classpath_of, environment

    given, rest = split_settings(options.arguments.rest)
    conf = joined_settings(settings(options), given)
    quick = class_data.options(java(), classpath_of(conf), shlex.split(conf["spark.driver.extraJavaOptions"]))
    conf["spark.driver.extraJavaOptions"] += "".join(f" {shlex.quote(option)}" for option in quick)
    home = spark_home()
    line = [str(home / "bin" / "spark-sql")]
    for key, value in conf.items():
        line += ["--conf", f"{key}={value}"]
    if options.database is not None:
        line += ["--database", options.database]
    sys.stdout.flush()
    os.execve(line[0], [*line, *rest], environment(home, conf))


def split_settings(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Settings with several values among spark-sql's arguments, which go together with ours, and the other arguments, as they are."""
    from streamql.extension.settings import LISTS

    given: dict[str, str] = {}
    rest: list[str] = []
    i = 0
    while i < len(arguments):
        option, equals, value = arguments[i].partition("=")
        known = option in _LIST_OPTIONS or option in ("--conf", "-c")
        if known and not equals and i + 1 < len(arguments):
            value, taken = arguments[i + 1], 2
        else:
            known, taken = known and bool(equals), 1
        key, _, text = (
            value.partition("=") if option in ("--conf", "-c") else (_LIST_OPTIONS.get(option, ""), "", value)
        )
        if known and key.strip() in LISTS:
            given[key.strip()] = text.strip()
        else:
            rest += arguments[i : i + taken]
        i += taken
    return given, rest
