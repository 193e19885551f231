"""Dynamic tables as lines, as records, on the screen of `streamql watch`, and as a picture."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streamql.cli.html.model import Report, Window
from streamql.cli.html.page import render
from streamql.cli.status.overview import Overview
from streamql.cli.status.screen import screen
from streamql.features.dynamic import lines as dynamic_lines
from tests.look.samples import DAY, DYNAMIC, NOW, SAMPLES, dynamic, refreshed
from tests.look.test_page import read

ALL = Overview(NOW, (), DYNAMIC)


def cells(name: str) -> dict[str, str]:
    """The cells of a sample, by their column."""
    (line,) = [line for line in ALL.dynamic_listing.lines if line.name == f"dwh.{name}"]
    return dict(zip(dynamic_lines.DYNAMIC_TABLES.header.values(), line.cells, strict=True))


def trouble(name: str) -> str:
    (line,) = [line for line in ALL.dynamic_listing.lines if line.name == f"dwh.{name}"]
    return line.trouble


@pytest.mark.parametrize(
    ("name", "state", "lag", "target", "following", "last"),
    [
        ("clean_orders", "behind", "4 min", "10 minutes", "in 5 min", "5 min ago, +12 ~3 -1"),
        ("customers", "current", "0", "downstream (10 minutes)", "in 9 min", "1 h ago, +12 ~3 -1"),
        ("daily", "late", "25 min (late)", "10 minutes", "now", "1 d ago, +12 ~3 -1"),
        ("failing", "failed", "2 h (late)", "10 minutes", "now", "FAILED 1 min ago"),
        ("hourly", "refreshing", "1 min", "every 1 hour", "in 8 min", "never"),
        ("never", "empty", "never filled", "10 minutes", "now", "never"),
        ("off", "suspended", "1 d (late)", "10 minutes", "", "1 d ago, +12 ~3 -1"),
        ("off_reader", "held", "1 d (late)", "10 minutes", "", "never"),
        ("manual", "current", "0", "", "", "1 d ago, +12 ~3 -1"),
    ],
)
def test_a_line(name: str, state: str, lag: str, target: str, following: str, last: str) -> None:
    found = cells(name)
    assert [found[c] for c in ("state", "lag", "target", "next refresh", "last refresh")] == [
        state,
        lag,
        target,
        following,
        last,
    ]


def test_troubles() -> None:
    assert trouble("failing") == "its last 3 refreshes failed: [DIVIDE_BY_ZERO] <b>Division</b> by zero"
    assert trouble("off_reader") == "no run can refresh it: dwh.off, which it reads, is suspended"
    assert trouble("daily").startswith("it has been behind for 25 min, and its target is 10 minutes")
    assert [name for name in ("clean_orders", "customers", "hourly", "never", "off", "manual") if trouble(name)] == []


def test_what_needs_attention_comes_first() -> None:
    states = [line.state for line in ALL.dynamic_listing.worst_first()]
    assert states[:3] == ["failed", "late", "held"]
    assert states[-1] == "current"
    assert ALL.dynamic_listing.summary() == (
        "9 dynamic tables: 1 failed, 1 late, 1 held, 1 empty, 1 refreshing, 1 behind, 1 suspended, 2 current"
    )
    assert Overview(NOW, ()).summary == "0 streams"
    assert Overview(NOW, (), (dynamic("d"),)).summary == "1 dynamic table: 1 current"


def test_a_record() -> None:
    found = dynamic_lines.line_of(DYNAMIC[2], NOW).record
    assert set(dynamic_lines.DYNAMIC_TABLES.numeric) < set(found)
    assert found["name"] == "dwh.daily"
    assert (found["lag_seconds"], found["target_seconds"], found["is_late"]) == (1500, 600, True)
    assert (found["last_rows_inserted"], found["last_seconds"]) == (12, 2.5)
    assert found["reads"] == "dwh.clean_orders, dwh.customers"


def shown(overview: Overview, width: int, height: int) -> list[str]:
    """The screen as text."""
    console = Console(width=width, height=height, record=True, highlight=False, file=io.StringIO())
    console.print(screen(overview, width, height, 5.0))
    return console.export_text().rstrip("\n").split("\n")


@pytest.mark.parametrize("height", [12, 16, 24, 50])
@pytest.mark.parametrize("width", [80, 130])
def test_the_screen(width: int, height: int) -> None:
    for overview in (ALL, Overview(NOW, SAMPLES, DYNAMIC), Overview(NOW, SAMPLES, DYNAMIC[:1])):
        lines = shown(overview, width, height)
        assert len(lines) <= height
        assert all(len(line) <= width for line in lines)
        assert any("dwh." in line for line in lines)
        assert any("dynamic table" in line for line in lines)
    assert any("reads" in line for line in shown(ALL, 130, 30))


def test_the_page() -> None:
    window = Window(NOW - DAY, NOW)
    page = read(render(Report(ALL, window)))
    assert "script" not in page.seen
    assert page.seen["svg"] == 1
    assert "There are no streams" not in page.text
    assert "no run can refresh it" in page.text
    assert "Dynamic tables" not in read(render(Report(Overview(NOW, SAMPLES), window))).text
    late = dynamic("d", DAY, last=refreshed())
    assert '<span class="pill late">1 d (late)</span>' in render(Report(Overview(NOW, (), (late,)), window))
