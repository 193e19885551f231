"""Streams as lines and records, and the live screen at the widths of terminals."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from streamql.cli.status import lines as status_lines
from streamql.cli.status.overview import Overview
from streamql.cli.status.screen import screen
from streamql.console.render.formats import write_json
from streamql.console.render.grid import cell_width
from streamql.engine.stream_facts import Consumer, StreamFacts
from streamql.sources.protocol import Backlog
from tests.look.samples import CURRENT, DAY, DYNAMIC, HOSTILE, NOW, SAMPLES, lagging, report, stream

LINES = {facts.name: status_lines.line_of(facts, NOW) for facts in SAMPLES}


def test_cells() -> None:
    assert LINES["sales.orders_st"].cells == (
        "sales.orders_st", "sales.orders", "3 v, 4 min", "1.7k rows, 50 KB", "data", "in 6 d", "1 h ago → sales.daily"
    )  # fmt: skip
    assert LINES["sales.customers_scd2"].cells[2:] == ("0", "0", "empty", "", "5 min ago → dwh.customers, dwh.history")
    assert LINES["sales.old_st"].cells[2:6] == ("812 v", "?", "stale", "")
    assert LINES["sales.failing_st"].cells[6].startswith("FAILED 1 h ago")
    assert LINES["sales.never_st"].cells[6] == "never"


def test_troubles() -> None:
    assert LINES["sales.orders_st"].trouble == ""
    assert LINES["sales.old_st"].trouble.startswith("STREAM_STALE")
    assert "stopped half way" in LINES["sales.half_st"].trouble
    assert "its last consumption failed: [USER_RAISED_EXCEPTION]" in LINES["sales.failing_st"].trouble
    assert LINES["sales.refunds_st"].trouble.startswith("it goes stale in 5 h")
    left = replace(SAMPLES[6], consumer=Consumer("etl@n", 4, NOW, False, "process 4 ended before its statement did"))
    assert "doctor --fix" in status_lines.line_of(left, NOW).trouble


def test_what_needs_somebody_comes_first() -> None:
    names = [line.name for line in Overview(NOW, SAMPLES).stream_listing.worst_first()]
    assert set(names[:2]) == {"sales.old_st", HOSTILE}
    assert set(names[2:5]) == {"sales.half_st", "sales.refunds_st", "sales.failing_st"}
    assert names[-1] == "sales.customers_scd2"
    assert (
        Overview(NOW, SAMPLES).stream_listing.summary()
        == "9 streams: 1 invalid, 1 stale, 1 partial, 1 busy, 4 with data, 1 empty"
    )
    assert Overview(NOW, ()).stream_listing.summary() == "0 streams"


def test_a_consumption_that_was_left_behind_comes_before_what_is_calm() -> None:
    """Its state is busy, but it needs attention."""
    left = replace(SAMPLES[6], name="z", consumer=Consumer("etl@n", 4, NOW, False, "process 4 ended"))
    found = Overview(NOW, (SAMPLES[0], SAMPLES[6], left))
    assert found.stream_listing.worst_first()[0].name == "z"
    assert [line.name for line in found.troubled] == ["z"]


def test_what_is_bad() -> None:
    """The colour of what needs attention is one rule, for the screen and the report."""
    found = {line.name: line.is_bad for line in Overview(NOW, SAMPLES, DYNAMIC).troubled}
    assert {name for name, is_bad in found.items() if is_bad} == {
        "sales.old_st", HOSTILE, "sales.failing_st", "dwh.daily", "dwh.failing"
    }  # fmt: skip
    assert {name for name, is_bad in found.items() if not is_bad} == {
        "sales.half_st", "sales.refunds_st", "dwh.off_reader"
    }  # fmt: skip


def test_a_row_of_show_streams() -> None:
    """All that a session on a server can ask for; the rest is not known."""
    row = {"name": "s", "table_name": "t", "mode": "STANDARD", "offset_version": 7, "offset_position": None} | {
        "lag_seconds": 3600, "has_data": True, "stale": False, "stale_after_ms": NOW + DAY // 2, "invalid_reason": None
    }  # fmt: skip
    facts = StreamFacts.of_show(row, NOW)
    assert status_lines.line_of(facts, NOW).cells == ("s", "t", "?", "?", "data", "in 12 h", "never")
    assert not facts.status.stale_soon
    assert StreamFacts.of_show(row | {"lag_seconds": 40 * 3600}, NOW).status.stale_soon
    reason = "CONSUMPTION_PARTIALLY_COMMITTED: a transaction stopped half way"
    assert StreamFacts.of_show(row | {"invalid_reason": reason}, NOW).state == "partial"
    assert StreamFacts.of_show(row | {"stale": True, "stale_after_ms": None}, NOW).state == "stale"


def test_initial_rows_are_data_of_unknown_size() -> None:
    facts = stream("s", replace(CURRENT, has_data=True, backlog=None))
    assert status_lines.line_of(facts, NOW).cells[2:5] == ("0", "initial", "data")
    assert status_lines.line_of(facts, NOW).record["backlog_rows"] is None


def test_a_topic_has_messages() -> None:
    backlog = Backlog(versions=1234, rows_added=1234, rows_removed=0, files=0, bytes=0, has_data=True)
    status = replace(lagging(1234, 1, 2 * DAY), backlog=backlog, latest_position='{"0": 1300}')
    facts = stream("clicks_st", status, offset_version=None, offset_position='{"0": 66}', unit="message")
    assert status_lines.line_of(facts, NOW).cells[2:4] == ("1.2k m, 1 d", "1.2k messages")
    found = status_lines.line_of(facts, NOW).record
    assert (found["offset_version"], found["offset_position"], found["latest_position"]) == (
        None, '{"0": 66}', '{"0": 1300}'
    )  # fmt: skip


def test_records_are_json() -> None:
    for facts in SAMPLES:
        out = io.StringIO()
        write_json(out, *status_lines.listing([facts], NOW).records())
        read = json.loads(out.getvalue())
        assert tuple(read) == tuple(status_lines.RECORD)
        assert read["name"] == facts.name
    failing = status_lines.line_of(SAMPLES[5], NOW).record
    assert (failing["last_outcome"], failing["last_error_at"]) == ("FAILED", "2026-09-21T13:13:20Z")
    assert status_lines.line_of(SAMPLES[6], NOW).record["consumed_by"] == "etl@node7:4711"


def shown(count: int, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    console.print(screen(report(count).overview, width, height, 5))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip("\n").split("\n")


@pytest.mark.parametrize("width", [80, 100, 132, 200])
@pytest.mark.parametrize(("count", "height"), [(0, 24), (1, 24), (9, 24), (300, 24), (300, 60), (9, 8)])
def test_the_screen_fits(count: int, width: int, height: int) -> None:
    lines = shown(count, width, height)
    assert len(lines) <= height
    assert max(map(cell_width, lines)) <= width


def test_the_screen_at_80_columns() -> None:
    text = "\n".join(shown(9, 80, 30))
    for said in (
        "9 streams: 1 invalid",
        "sales.old_st",
        "stale",
        "sales.orders_st",
        "1.7k rows",
        "3 v, 4 min",
        "6 d",
        "1 h ago",
    ):
        assert said in text
    assert "\u202e" not in text
    assert "and " in "\n".join(shown(300, 80, 24))


def test_a_lag_without_an_age() -> None:
    assert status_lines.lag_text(stream("s", replace(lagging(2, 1, 1), lag_seconds=None))) == "2 v"
