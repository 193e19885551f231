"""The report's page: well formed, self-contained, nothing of it taken for markup that was not meant so."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser

import pytest

from streamql.cli.html.charts import changes_chart, lag_chart, scale, time_label
from streamql.cli.html.lineage import lineage
from streamql.cli.html.markup import Markup, element, text, title
from streamql.cli.html.model import PARTS, Report, Window, window_of
from streamql.cli.html.page import render
from streamql.cli.status.overview import Overview
from streamql.engine.ledger import Bucket, Flow
from tests.look.samples import DAY, NOW, buckets, report, stream

VOID = {"meta"}
WEEK = Window(NOW - 7 * DAY, NOW)


class Reader(HTMLParser):
    """Reads a page, and fails where tags do not pair."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: dict[str, int] = {}
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("count", [0, 1, 9, 300])
def test_a_page_is_well_formed_and_loads_nothing(count: int) -> None:
    page = render(report(count))
    reader = read(page)
    assert "script" not in reader.seen
    assert not {"link", "img", "iframe", "object", "embed"} & set(reader.seen)
    assert all(link.startswith("#") and link[1:] in reader.ids for link in reader.links)
    assert len(set(reader.ids)) == len(reader.ids) == count
    assert not re.search(r"url\(|@import|https?://", page)
    assert "default-src 'none'" in page
    assert "prefers-color-scheme:dark" in page
    assert len(page) < 25_000 * (count + 1)


def test_hostile_names_and_errors_are_text() -> None:
    page = render(report(9))
    assert "<script" not in page
    assert page.count("</title><script") == 0
    assert "\u202e" not in page
    reader = read(page)
    assert "<script>alert('x')</script>" in reader.text
    assert "[USER_RAISED_EXCEPTION] <script>alert(1)</script> & more" in reader.text


def test_everything_asked_for_is_there() -> None:
    said = read(render(report(9))).text
    for what in ("Lineage", "When streams go stale", "stale: its history is lost", "in 5 h", "CONSUMPTION_PARTIALLY_COMMITTED",
        "UPDATE_BEFORE",
                 "rows written, change types not in the ledger", "consumption failed", "dwh.history"):  # fmt: skip
        assert what in said, what


def test_markup() -> None:
    assert text('<a & "b">\x00\n') == "&lt;a &amp; &quot;b&quot;&gt;\\u0000\\n"
    assert element("a", "x<", Markup("<b></b>"), None, 3, 1.25, class_="c", data_x='"', href=None) == (
        '<a class="c" data-x="&quot;">x&lt;<b></b>31.2</a>'
    )
    assert title("a\n<b>") == "<title>a\n&lt;b&gt;</title>"


@pytest.mark.parametrize("largest", [0, 1, 2, 4, 5, 9, 10, 11, 99, 100, 101, 950, 12_345, 10**12, 7 * 10**15])
def test_scales_are_round_and_high_enough(largest: int) -> None:
    found = scale(largest)
    assert found.top >= max(1, largest)
    assert 1 <= len(found.ticks) <= 4
    assert found.ticks[-1] == found.top
    assert found.top <= max(5, 2.5 * largest)
    assert found.top <= max(6, 1.34 * largest), "it ends where the data does"


def test_charts_of_nothing_and_of_much() -> None:
    assert "polyline" not in lag_chart((), None, WEEK)
    assert "now: 3 versions behind" in lag_chart((), 3, WEEK)
    assert "now: 3 messages behind" in lag_chart((), 3, WEEK, "message")
    one = (Bucket(PARTS - 1, 1, 0, 4, {"INSERT": 10, "DELETE": 2}, 0),)
    assert "found 4 versions waiting" in lag_chart(one, 0, WEEK)
    assert "10 INSERT, 2 DELETE" in changes_chart(one, WEEK)
    unknown = (Bucket(3, 2, 1, 4, {}, 77, "<i>boom</i>"),)
    chart = changes_chart(unknown, WEEK)
    assert "77 rows written" in chart
    assert "1 failed: &lt;i&gt;boom&lt;/i&gt;" in chart
    assert "<i>" not in chart


def test_bars_stay_inside() -> None:
    for path in re.findall(r'd="([^"]*)"', changes_chart(buckets(5), WEEK)):
        for at_x, at_y in re.findall(r"M([-\d.]+),([-\d.]+)", path):
            assert 40 <= float(at_x) <= 440
            assert 0 <= float(at_y) <= 150


def test_windows_and_labels() -> None:
    assert window_of(None, NOW, None).span_ms >= 60_000
    assert window_of(NOW - DAY, NOW, None).since_ms < NOW - DAY
    assert window_of(NOW - DAY, NOW, 3000) == Window(NOW - 3000, NOW)
    assert window_of(NOW - DAY, NOW, 7 * DAY) == window_of(NOW - DAY, NOW, None)
    assert window_of(None, NOW, 7 * DAY) == WEEK
    assert WEEK.bounds(0)[0] == NOW - 7 * DAY
    assert WEEK.bounds(PARTS - 1)[1] == NOW
    labels = [time_label(NOW, span) for span in (60_000, 3 * 3_600_000, 7 * DAY, 60 * DAY)]
    assert labels == ["14:13:20", "14:13", "Sep 21 14:13", "Sep 21"]


def test_lineage_keeps_boxes_apart() -> None:
    streams = tuple(stream(f"db.s{n:03}", source=f"db.t{n % 40}") for n in range(200))
    flows = {s.uuid: (Flow(f"db.out{n % 150}", 1, None, NOW),) for n, s in enumerate(streams)}
    picture = lineage(Report(Overview(NOW, streams), WEEK, {}, flows))
    height = float(re.findall(r'viewBox="0 0 \d+ (\d+)"', picture)[0])
    places: dict[str, list[float]] = {}
    for left, top in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="220"', picture):
        places.setdefault(left, []).append(float(top))
    assert sorted(map(len, places.values())) == [40, 150, 200]
    for column in places.values():
        tops = sorted(column)
        assert all(b - a > 53 for a, b in itertools.pairwise(tops))
        assert tops[0] >= 0
        assert tops[-1] + 42 <= height
