"""Scenarios over a source of two parts, whose positions are no numbers."""

from __future__ import annotations

from streamql.sources.protocol import HIDDEN_TYPE
from tests.protocol.cast import ALL, DEATHS, Who, block, ddl, insert, pair, refresh, residual, scene, writes, written
from tests.protocol.scheduler import LOST
from tests.protocol.together import together

PARTS = (
    scene(
        "two inserts of a source of two parts",
        pair("x"),
        Who("A", insert("x", "s")),
        Who("B", insert("x", "s")),
        then=insert("x", "s"),
        faults=ALL,
        schedules=400,
        meets="fence, statement refused, event refused, CLAIM_LOST",
    ),
    scene(
        "a source of two parts that is written",
        pair("x"),
        Who("A", insert("x", "s")),
        Who("W", writes("s_right"), "far"),
        then=insert("x", "s"),
        faults=DEATHS | {LOST},
        also=written,
    ),
    scene(
        "a block over a source of two parts",
        pair("x", "y"),
        Who("A", block("s")),
        then=block("s"),
        last=block("s"),
        faults=DEATHS | {LOST},
        also=together,
    ),
    scene(
        "a release of a source of two parts",
        pair("x"),
        Who("A", insert("x", "s")),
        Who("P", ddl("ALTER STREAM s SET OFFSET TO LATEST"), "far"),
        faults=DEATHS | {LOST},
        also=residual,
    ),
    scene(
        "two refreshes",
        pair("x", type_name=HIDDEN_TYPE),
        Who("A", refresh("x", "s")),
        Who("B", refresh("x", "s"), "far"),
        then=refresh("x", "s"),
        faults=ALL,
        schedules=300,
        meets="fence, statement refused, event refused, STREAM_MOVED",
    ),
    scene(
        "two refreshes of a source that is written",
        pair("x", type_name=HIDDEN_TYPE),
        Who("A", refresh("x", "s")),
        Who("W", writes("s_left")),
        Who("B", refresh("x", "s")),
        then=refresh("x", "s"),
        faults=DEATHS | {LOST},
        also=written,
    ),
)
