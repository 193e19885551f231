"""The charts of one stream: lag as its consumptions found it, and the rows they brought, by change type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from streamql.cli.html.markup import Content, Markup, element, joined, title
from streamql.cli.html.model import PARTS, Window
from streamql.console.render import quantities
from streamql.engine.ledger import Bucket
from streamql.errors import counted

WIDTH, HEIGHT = 440, 150
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 14, 24
CHANGE_STYLES = (
    ("INSERT", "insert"),
    ("UPDATE_BEFORE", "before"),
    ("UPDATE_AFTER", "after"),
    ("DELETE", "delete"),
)
"""Change types, from the bottom of a bar to its top, and their CSS classes."""


@dataclass(frozen=True)
class Scale:
    """The vertical scale: from 0 to `top`, with a line at each of `ticks`."""

    top: int
    ticks: tuple[int, ...]

    def y(self, value: float) -> float:
        """Returns where a value is, in the chart's units."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.top


_ROUND = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50)


def scale(largest: int) -> Scale:
    """Returns a scale of round numbers with two to four steps, which ends as close to the largest value as they allow."""
    if largest <= 4:
        top = max(1, largest)
        return Scale(top, tuple(range(1, top + 1)))
    power = 1
    while power * 100 < largest:
        power *= 10
    ends = [(step * -(-largest // step), step) for step in (power * n for n in _ROUND)]
    top, step = min((top, step) for top, step in ends if 2 <= top // step <= 4)
    return Scale(top, tuple(range(step, top + 1, step)))


def x(part: float) -> float:
    """Returns where a part of the window begins."""
    return LEFT + (WIDTH - LEFT - RIGHT) * part / PARTS


def lag_chart(buckets: Sequence[Bucket], lag_now: int | None, window: Window, unit: str = "version") -> Markup:
    """Returns the versions, or messages (`unit`), that each consumption found waiting, with straight lines from one to the next; at the
    right, what waits now."""
    levels = scale(max([b.lag_versions_max for b in buckets] + [lag_now or 0]))
    base = levels.y(0)
    points: list[tuple[float, float]] = []
    marks: list[Content] = []
    for b in buckets:
        if b.consumed:
            points += [(x(b.number + 0.5), levels.y(b.lag_versions_max)), (x(b.number + 0.5), base)]
    if points:
        peaks = "".join(f"M{px:.1f},{py:.1f}h0" for px, py in points[::2])
        marks.append(element("path", d=peaks, class_="peak"))
    if lag_now is not None:
        points.append((x(PARTS), levels.y(lag_now)))
        said = title(f"now: {counted(lag_now, unit)} behind")
        marks.append(element("circle", said, cx=x(PARTS), cy=levels.y(lag_now), r=3.5, class_="now"))
    shape: list[Content] = []
    if len(points) > 1:
        first = (points[0][0], base) if buckets else (x(0), base)
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in [first, *points])
        shape = [
            element("polygon", points=f"{line} {points[-1][0]:.1f},{base:.1f}", class_="area"),
            element("polyline", points=line, class_="line"),
        ]
    hovers = [_hover(b, window, f"found {counted(b.lag_versions_max, unit)} waiting, at most") for b in buckets]
    return _chart(f"lag in {unit}s over time", levels, window, *shape, *_failures(buckets), *hovers, *marks)


def changes_chart(buckets: Sequence[Bucket], window: Window) -> Markup:
    """Bars of the rows that consumptions brought, by change type; those of unknown type apart."""
    levels = scale(max([_total(b) for b in buckets], default=0))
    bars: dict[str, list[str]] = {}
    for b in buckets:
        at = 0
        for rows, css in [(b.changes.get(change_type, 0), css) for change_type, css in CHANGE_STYLES] + [
            (b.rows_other, "other")
        ]:
            if rows:
                bars.setdefault(css, []).append(_bar(b.number, levels.y(at), levels.y(at + rows)))
            at += rows
    drawn = [
        element("path", d="".join(paths), class_=css) for css, paths in bars.items()
    ]  # one a colour: pages stay small
    hovers = [_hover(b, window, _said(b)) for b in buckets]
    return _chart("rows by change type over time", levels, window, *drawn, *_failures(buckets), *hovers)


def has_changes(buckets: Sequence[Bucket]) -> bool:
    """Returns whether the ledger knows change types of any of these."""
    return any(any(b.changes.values()) for b in buckets)


def time_label(at_ms: int, span_ms: int) -> str:
    """Returns a time on an axis, as exact as the window's length asks for."""
    at = datetime.fromtimestamp(at_ms / 1000, timezone.utc)
    if span_ms < 2 * 3_600_000:
        return at.strftime("%H:%M:%S")
    return at.strftime("%H:%M" if span_ms < 36 * 3_600_000 else "%b %d" if span_ms > 10 * 86_400_000 else "%b %d %H:%M")


def _total(b: Bucket) -> int:
    return sum(b.changes.values()) + b.rows_other


def _said(b: Bucket) -> str:
    known = [
        f"{b.changes[change_type]:,} {change_type}" for change_type, _ in CHANGE_STYLES if b.changes.get(change_type)
    ]
    other = [f"{counted(b.rows_other, 'row')} written"] if b.rows_other or not known else []
    return ", ".join([*known, *other])


def _bar(part: int, bottom: float, top: float) -> str:
    """Returns a bar as a piece of a path; no less than a hair's breadth high."""
    gap = 0.12
    wide = x(part + 1 - gap) - x(part + gap)
    return f"M{x(part + gap):.1f},{bottom:.1f}h{wide:.1f}v{-max(bottom - top, 0.7):.1f}h{-wide:.1f}z"


def _hover(b: Bucket, window: Window, what: str) -> Markup:
    """Returns an invisible column over a part of the window, that says what was in it."""
    since, until = (quantities.plain_clock(at) for at in window.bounds(b.number))
    lines = [f"{since} to {until[11:]}", counted(b.consumed, "consumption")]
    if b.consumed:
        lines[-1] += f": {what}"
    if b.failed:
        lines.append(f"{b.failed} failed" + (f": {quantities.shortened(b.error, 300)}" if b.error else ""))
    wide, high = x(b.number + 1) - x(b.number), HEIGHT - TOP - BOTTOM
    column = f"M{x(b.number):.1f},{TOP}h{wide:.1f}v{high}h{-wide:.1f}z"
    return element("path", title("\n".join(lines)), d=column, class_="hover")


def _failures(buckets: Sequence[Bucket]) -> list[Markup]:
    """Returns a mark on the axis where consumptions failed."""
    base = HEIGHT - BOTTOM
    marks = []
    for b in buckets:
        if b.failed:
            middle = x(b.number + 0.5)
            corners = f"{middle:.1f},{base - 7} {middle - 4:.1f},{base} {middle + 4:.1f},{base}"
            marks.append(element("polygon", points=corners, class_="failed"))
    return marks


def _chart(label: str, levels: Scale, window: Window, *content: Content) -> Markup:
    lines = [
        joined(
            element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=levels.y(tick), y2=levels.y(tick), class_="grid"),
            element("text", quantities.count(tick), x=LEFT - 6, y=levels.y(tick) + 4, class_="tick end"),
        )
        for tick in levels.ticks
    ]
    base = levels.y(0)
    axis = joined(
        element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=base, y2=base, class_="axis"),
        element("text", "0", x=LEFT - 6, y=base + 4, class_="tick end"),
        element("text", time_label(window.since_ms, window.span_ms), x=LEFT, y=HEIGHT - 7, class_="tick"),
        element("text", "now", x=WIDTH - RIGHT, y=HEIGHT - 7, class_="tick end"),
        element(
            "text",
            time_label(window.since_ms + window.span_ms // 2, window.span_ms),
            x=(LEFT + WIDTH - RIGHT) / 2,
            y=HEIGHT - 7,
            class_="tick middle",
        ),
    )
    return element(
        "svg", *lines, *content, axis, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label, class_="chart"
    )
