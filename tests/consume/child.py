"""A second process that consumes, and dies where it is told: `python -m tests.consume.child DATA POINT SQL…`.

POINT: `never`, or `before:NAME` / `after:NAME` of one of POINTS; there the process kills itself with SIGKILL. The JVM that it started
goes on until it notices, as it would in life: a statement that is running may still commit.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from streamql.consume import run
from streamql.delta.command import Command

POINTS: dict[str, tuple[Any, str]] = {
    "claim": (run, "claim_streams"),
    "execute": (Command, "execute"),
    "decide": (run, "decide"),
    "end": (run, "end"),
}


def arm(point: str) -> None:
    """Makes the process kill itself before or after the named step."""
    if point == "never":
        return
    when, name = point.split(":")
    owner, attribute = POINTS[name]
    step: Callable[..., Any] = getattr(owner, attribute)

    def dying(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = step(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, attribute, dying)


def main(data: str, point: str, *statements: str) -> None:
    """Runs the statements in a session over the data directory."""
    from streamql import session, sql

    conf = {"spark.master": "local[1]", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"}
    spark = session(data, conf)
    arm(point)
    for statement in statements:
        sql(statement, spark)
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
