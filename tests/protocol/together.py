"""Several statements in one consumption: blocks, and several INSERTs in one statement."""

from __future__ import annotations

from tests.protocol.cast import (
    ALL,
    DEATHS,
    TWICE,
    TWO_TARGETS,
    Who,
    block,
    ddl,
    insert,
    inserts,
    scene,
    streams,
)
from tests.protocol.scheduler import FAIL, LOST
from tests.protocol.world import World


def together(world: World) -> None:
    """Each row goes into both targets."""
    world.together = ("/data/x", "/data/y")


TWO_BOTH = streams("a", "b", targets=("x", "y"))
TOGETHER = (
    scene(
        "several inserts in one",
        TWO_TARGETS,
        Who("A", inserts("s")),
        then=inserts("s"),
        last=inserts("s"),
        faults=ALL,
        also=together,
        bounds=TWICE,
        schedules=400,
        meets="fence, statement skipped",
    ),
    scene(
        "several inserts against one",
        TWO_TARGETS,
        Who("A", inserts("s")),
        Who("B", insert("x", "s"), "far"),
        then=inserts("s"),
        last=inserts("s"),
        faults=DEATHS | {LOST, FAIL},
        also=together,
        schedules=250,
    ),
    scene(
        "one block",
        TWO_TARGETS,
        Who("A", block("s")),
        then=block("s"),
        last=block("s"),
        faults=ALL,
        also=together,
        bounds=TWICE,
        schedules=600,
        meets="fence, statement skipped, ledger read",
    ),
    scene(
        "a block that is corrected",
        TWO_TARGETS,
        Who("A", block("s", on_error="correct")),
        then=block("s", on_error="correct"),
        last=block("s", on_error="correct"),
        faults=ALL,
        also=together,
        bounds=TWICE,
        schedules=500,
        meets="fence, statement skipped, ledger read",
    ),
    scene(
        "a block that continues on errors",
        TWO_TARGETS,
        Who("A", block("s", on_error="continue")),
        then=block("s"),
        last=block("s"),
        faults=DEATHS | {FAIL},
        also=together,
        schedules=200,
        meets="fence, COMMIT refused",
    ),
    scene(
        "two blocks",
        TWO_TARGETS,
        Who("A", block("s")),
        Who("B", block("s"), "far"),
        then=block("s"),
        last=block("s"),
        faults=ALL,
        also=together,
        schedules=500,
    ),
    scene(
        "a block and an insert",
        TWO_TARGETS,
        Who("A", block("s")),
        Who("B", insert("x", "s"), "far"),
        then=block("s"),
        last=block("s"),
        faults=DEATHS | {LOST, FAIL},
        also=together,
        schedules=300,
    ),
    scene(
        "a block of two streams",
        TWO_BOTH,
        Who("A", block("a", "b")),
        Who("B", insert("x", "b"), "far"),
        then=block("a", "b"),
        last=block("a", "b"),
        left=("a", "b"),
        faults=DEATHS | {LOST, FAIL},
        also=together,
        schedules=250,
    ),
    scene(
        "a block and a person who gives it up",
        TWO_TARGETS,
        Who("A", block("s")),
        Who("P", ddl("ALTER STREAM s SET OFFSET TO LATEST"), "far"),
        Who("B", insert("x", "s")),
        then=block("s"),
        last=block("s"),
        faults=DEATHS | {FAIL},
        also=together,
        schedules=300,
    ),
)
