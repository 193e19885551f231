"""The picture of tables, streams, dynamic tables and tasks: columns, rows, circles."""

from __future__ import annotations

import re
from itertools import pairwise

from streamql.cli.html.graph import BEND, Box, Edge, laid_out
from streamql.cli.html.lineage import lineage
from streamql.cli.html.model import Report, Window
from streamql.cli.status.overview import Overview
from streamql.engine.ledger import Flow
from tests.look.samples import DAY, DYNAMIC, HOSTILE, NOW, dynamic, stream, task
from tests.look.test_page import read

WEEK = Window(NOW - 7 * DAY, NOW)


def names_in_columns(picture: str) -> list[set[str]]:
    """What is in each column of a picture, by the left edges of its boxes."""
    found: dict[int, set[str]] = {}
    for left, name in re.findall(r'<rect x="(\d+)"[^>]*></rect><text[^>]*>([^<]*)</text>', picture):
        found.setdefault(int(left), set()).add(name)
    return [found[left] for left in sorted(found)]


def test_no_edge_passes_behind_a_box() -> None:
    """Else it looks like one edge to that table and another one from it."""
    edges = [Edge(a, b, "") for a, b in ("ta", "ua", "ab", "tb", "ac", "bd", "ad", "td", "ud", "de", "ce")]
    placed = laid_out({key: Box(key, "", "") for key in "tuabcde"}, edges)
    assert placed.columns == {"t": 0, "u": 0, "a": 1, "b": 2, "c": 2, "d": 3, "e": 4}
    bends = {(e.start, e.end) for e, path in zip(placed.edges, placed.paths, strict=True) if len(path) > 2}
    assert bends == {("t", "b"), ("a", "d"), ("t", "d"), ("u", "d"), ("c", "e")}
    for column in range(5):
        spans = sorted(
            (row, row + 1) if isinstance(node, str) else (row + (1 - BEND) / 2, row + (1 + BEND) / 2)
            for node, row in placed.rows.items()
            if (placed.columns[node] if isinstance(node, str) else node[1]) == column
        )
        assert all(below <= above + 1e-9 for (_, below), (above, _) in pairwise(spans)), column
        assert spans[0][0] >= -1e-9


def test_dynamic_tables() -> None:
    picture = lineage(Report(Overview(NOW, (), DYNAMIC), WEEK))
    seen = read(picture)
    sources = {name for t in DYNAMIC for name in t.sources}
    assert seen.seen["rect"] == len(DYNAMIC) + len(sources)
    assert seen.seen["path"] == sum(len(t.reads) + len(t.sources) for t in DYNAMIC)
    assert "script" not in seen.seen
    assert "lag 25 min (late) of 10 minutes" in seen.text
    assert 'class="box bad late"' in picture
    columns = names_in_columns(picture)
    assert {"sales.orders", "sales.customers", "sales.refunds"} <= columns[0]
    names = ("clean_orders", "daily", "failing", "off", "off_reader", "never")
    assert [next(n for n, c in enumerate(columns) if f"dwh.{name}" in c) for name in names] == [1, 2, 3, 3, 4, 2]


def test_a_pipeline_is_one_picture() -> None:
    """Rows go from a table through a stream and the task that reads it into a table, from there into a dynamic table, and back."""
    streams = (stream("a.s", source="a.t"), stream("a.back", source="a.d"))
    flows = {"a.s": (Flow("a.u", 3, 9, NOW), Flow("a.by_hand", 1, None, NOW)), "a.back": (Flow("a.t", 2, None, NOW),)}
    made = (dynamic("a.d", sources=("a.u",)),)
    load = task("load", "INSERT INTO a.u SELECT * FROM a.s -- not FROM a.back")
    refresh = task("refresh", "REFRESH DYNAMIC TABLE a.d", after=(load.name,))
    seen = Overview(NOW, streams, made, ((load, load), (refresh, load)))
    picture = lineage(Report(seen, WEEK, {}, flows))
    assert names_in_columns(picture) == [
        {"a.t"}, {"a.s"}, {"sales.load", "a.by_hand"}, {"a.u", "sales.refresh"}, {"a.d"}, {"a.back"}, {"a.t"}
    ]  # fmt: skip
    said = sorted(e.partition("\n")[0] for e in re.findall(r"<path[^>]*><title>([^<]*)</title>", picture))
    assert said == ["a.back → a.t", "a.d → a.back", "a.s → a.by_hand", "a.s → a.u", "a.s → sales.load", "a.t → a.s", "a.u → a.d",
                    "sales.refresh runs after sales.load", "sales.refresh → a.d"]  # fmt: skip
    assert "3 consumptions, 9 rows written" in picture
    assert "the same, further left" in picture


def test_circles_of_any_kind_are_drawn() -> None:
    streams = (stream("a.s", source="a.t"), stream("b.s", source="a.u"), stream("c.s", source="c.own"))
    flows = {
        "a.s": (Flow("a.u", 3, 9, NOW),),
        "b.s": (Flow("a.t", 1, None, NOW),),
        "c.s": (Flow("c.own", 1, None, NOW),),
    }
    picture = lineage(Report(Overview(NOW, streams), WEEK, {}, flows))
    assert picture.count("the same, further left") == 2


def test_hostile_names_are_text() -> None:
    odd = stream(HOSTILE, source=HOSTILE + "t")
    picture = lineage(Report(Overview(NOW, (odd,)), WEEK, {}, {odd.uuid: (Flow(HOSTILE + "u", 1, None, NOW),)}))
    assert "<script" not in picture
    assert "script" not in read(picture).seen
