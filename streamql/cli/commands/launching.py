"""What the commands have in common that become a JVM: its settings and its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from streamql.console import data_directory
from streamql.console.options import Options
from streamql.errors import StreamqlError


def settings(options: Options) -> dict[str, str]:
    """Returns the embedded session's settings over the data directory, which is made if it is not there. Raises JAVA_NOT_FOUND,
    JAR_BUILD_FAILED, INVALID_ARGUMENT."""
    from streamql.extension.embedded import embedded_conf
    from streamql.sessions import make_lake

    data = options.data.expanduser().resolve()
    is_made = data_directory.is_new(data)
    try:
        conf = embedded_conf(data, options.conf)
        make_lake(data, conf)
    except OSError as e:
        raise StreamqlError(
            "INVALID_ARGUMENT",
            f"the data directory {data} cannot be used: {e.strerror}",
            hint="name another with --data",
        ) from e
    if is_made and not options.silent:
        print(data_directory.made(data), file=sys.stderr, flush=True)
    return conf


def joined_settings(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Settings with several values: what is given stands before ours."""
    from streamql.extension.settings import joined

    return {**ours, **{key: joined(key, value, ours[key]) if key in ours else value for key, value in given.items()}}


def environment(home: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a JVM with settings `conf`: this Spark. If Spark is one process, this Python and loopback."""
    from streamql.extension.settings import is_one_process

    # What a PySpark driver has set for its own JVM does not hold for this one.
    dropped = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    result = {key: value for key, value in os.environ.items() if key not in dropped}
    result |= {"SPARK_HOME": str(home), "SPARK_CONNECT_MODE": "0"}
    if is_one_process(conf.get("spark.master", "local")):
        result.setdefault("PYSPARK_PYTHON", sys.executable)
        result.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return result
