"""A process that commits to a log as fast as it can: `python -m tests.s3.racer SETTINGS LOG COMMITS`.

SETTINGS: Hadoop's, as JSON. It prints the versions that it got, as JSON. It runs no Spark, so that several fit on a small machine.
"""

from __future__ import annotations

import json
import os
import sys

from tests.s3.support import Store, bare_jvm


def main(settings: str, log: str, commits: str) -> None:
    """Commit, each time at the lowest version that is not known to be taken."""
    with bare_jvm() as gateway:
        hadoop = gateway.jvm.org.apache.hadoop.conf.Configuration()
        for key, value in json.loads(settings).items():
            hadoop.set(key, value)
        store = Store(gateway.jvm, hadoop)
        got: list[int] = []
        version = 0
        while len(got) < int(commits):
            raised = store.write(f"{log}/{version:020}.json", [f"{os.getpid()} {version}"])
            if raised not in ("", "FileAlreadyExistsException"):
                raise RuntimeError(f"version {version}: {raised}")
            if not raised:
                got.append(version)
            version += 1
        print(json.dumps(got), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
