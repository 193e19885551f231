"""A second process that consumes, and dies where it is told: `python -m tests.consume.child DATA POINT SQL…`.

POINT: `never`, or `before:NAME` / `after:NAME` of one of POINTS, or `before:NAME:N` for the N-th time; there the process kills itself
with SIGKILL. With `stop:NAME` it stops itself with SIGSTOP before the step, until SIGCONT. The JVM that it started
goes on until it notices, as it would in life: a statement that is running may still commit.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from py4j.java_gateway import CallbackServer

from streamql.consume import consumption
from streamql.consume.claims import resolve
from streamql.delta.command import Command
from streamql.errors import StreamqlError
from streamql.features.expectations import quarantine
from streamql.features.tasks.runs import conduct
from tests.small import INTERPRETED, SHORT_LIVED

POINTS: dict[str, list[tuple[Any, str]]] = {
    "claim": [(consumption, "claim_streams")],
    "execute": [(Command, "execute")],
    "resolve": [(consumption, "resolve_own")],
    "end": [(consumption, "end_claim"), (resolve, "end_claim")],
    "task_end": [(conduct, "end")],
    "quarantine": [(quarantine, "write")],
}


def arm(point: str) -> None:
    """Makes the process kill itself before or after the named step, or stop itself before it."""
    if point == "never":
        return
    when, name, *count = point.split(":")
    left = [int(count[0]) if count else 1]
    for owner, attribute in POINTS[name]:
        step = getattr(owner, attribute)
        setattr(owner, attribute, stopping(step) if when == "stop" else dying(step, when, left))


def stopping(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step, before which the process stands still until it gets SIGCONT."""

    def stopped(*args: Any, **kwargs: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSTOP)
        return step(*args, **kwargs)

    return stopped


def dying(step: Callable[..., Any], when: str, left: list[int]) -> Callable[..., Any]:
    """The step, which ends the process the last time that is `left`."""

    def last(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if when == "before" and left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        result = step(*args, **kwargs)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return last


def start_callbacks_late() -> None:
    """Py4J's thread that listens for the JVM's calls starts late, as on a busy machine."""
    run = CallbackServer.run

    def late(server: CallbackServer) -> None:
        time.sleep(0.5)
        run(server)

    CallbackServer.run = late


def main(data: str, point: str, *statements: str) -> None:
    """Runs the statements in a session over the data directory; with POINT `loop` over and over, until somebody kills it: {n} in them
    is another word each time."""
    from streamql import session, sql

    conf = {
        "spark.master": "local[1]",
        **SHORT_LIVED,
        **dict(INTERPRETED),
    }
    start_callbacks_late()
    conf |= json.loads(os.environ.get("CHILD_CONF", "{}"))
    spark = session(data, conf)
    if point != "loop":
        arm(point)
    if point == "loop":
        for n in itertools.count():
            once(partial(sql, spark=spark), [text.replace("{n}", f"{os.getpid()}_{n}") for text in statements])
    for statement in statements:
        sql(statement, spark)
        print("done", flush=True)


def once(do: Callable[[str], object], statements: Sequence[str]) -> None:
    """Runs the statements; one that finds its stream busy is left for the next time, with the transaction that it is in."""
    is_given_up = False
    for statement in statements:
        if is_given_up and statement != "BEGIN TRANSACTION":
            continue
        is_given_up = False
        try:
            do(statement)
            print("done", flush=True)
        except StreamqlError as e:
            if e.code not in ("STREAM_BUSY", "STREAM_MOVED"):
                raise
            print(e.code, flush=True)
            is_given_up = True
    if is_given_up:
        with contextlib.suppress(
            StreamqlError
        ):  # no transaction, or one of which a part is done: the next run resumes it
            do("ROLLBACK")


if __name__ == "__main__":
    main(*sys.argv[1:])
