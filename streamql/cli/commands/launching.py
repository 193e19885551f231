"""What the commands have in common that become a JVM: its settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping

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
