"""When streams go stale unless they are consumed: a bar each, the soonest first."""

from __future__ import annotations

from streamql.cli.html.markup import Markup, element, joined
from streamql.cli.status.overview import Overview
from streamql.console.render import quantities
from streamql.engine.stream_facts import StreamFacts

SHOWN_MAX = 40


def forecast(overview: Overview) -> Markup:
    """Returns the bars, or a sentence where nothing waits."""
    waiting = sorted((s for s in overview.streams if s.status.stale_after_ms is not None), key=_when)
    gone = [s for s in overview.streams if s.status.stale]
    if not waiting and not gone:
        return element("p", "Nothing waits in any stream that can be read, so none can go stale.", class_="quiet")
    longest = max([_when(s) - overview.at_ms for s in waiting] + [1])
    rows = [_row(s.name, "gone", 0.0, "stale: its history is lost") for s in gone[:SHOWN_MAX]]
    for s in waiting[: SHOWN_MAX - len(rows)]:
        left = _when(s) - overview.at_ms
        css = "gone" if left <= 0 else "soon" if s.status.stale_soon else "fine"
        rows.append(
            _row(
                s.name,
                css,
                max(0.0, left / longest),
                f"{quantities.until(_when(s), overview.at_ms)}, {quantities.plain_clock(_when(s))}",
            )
        )
    hidden = len(waiting) + len(gone) - len(rows)
    more = element("p", f"… and {hidden} more, later than these.", class_="quiet") if hidden > 0 else None
    return joined(element("div", *rows, class_="forecast"), more)


def _when(stream: StreamFacts) -> int:
    return stream.status.stale_after_ms or 0


def _row(name: str, css: str, share: float, said: str) -> Markup:
    bar = element("i", style=f"width:{max(share * 100, 0.8):.1f}%", class_=css)
    return element(
        "div",
        element("span", name, class_="name", title=name),
        element("span", bar, class_="bar"),
        element("span", said, class_=f"when {css}"),
    )
