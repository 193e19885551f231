"""The page itself: what needs attention first, then dynamic tables, streams and tasks, the picture of all, when streams go stale, and each
stream over time."""

from __future__ import annotations

from collections.abc import Sequence

from streamql.cli.html import charts
from streamql.cli.html.forecast import forecast
from streamql.cli.html.lineage import lineage
from streamql.cli.html.markup import Markup, element, joined
from streamql.cli.html.model import Report
from streamql.cli.html.style import STYLE
from streamql.console.render import quantities
from streamql.console.status import Line, Listing
from streamql.durations import in_words
from streamql.engine.ledger import Bucket
from streamql.engine.stream_facts import StreamFacts
from streamql.errors import counted

OPEN_MAX = 12
"""How many streams show their charts at once; the others open by a click."""

TROUBLES_MAX = 20

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for the page: nothing; and no script runs in it, whatever a stream is called."""


def render(report: Report) -> str:
    """Returns the page."""
    seen = report.overview
    body = [_head(report), _tiles(report), _troubles(report)]
    if seen.dynamic:
        body.append(_section("Dynamic tables", _table(seen.dynamic_listing, _DYNAMIC_ORDER)))
    if seen.streams:
        body.append(_section("Streams", _table(seen.stream_listing, _STREAM_ORDER, "s")))
    if seen.tasks:
        body.append(_section("Tasks", _table(seen.task_listing, _TASK_ORDER)))
    if seen.listings:
        body.append(_section("Lineage", element("div", lineage(report), class_="card scroll")))
    else:
        body.append(element("p", "There are no streams here. CREATE STREAM s ON TABLE t makes one.", class_="card"))
    if seen.streams:
        body += [
            _section("When streams go stale", element("div", forecast(seen), class_="card")),
            _section(f"Over time, {_window(report)}", _each(report)),
        ]
    foot = element(
        "footer",
        "streamql report. Lag, backlog and staleness are from the sources' logs; what was consumed and refreshed is from the ledger.",
    )
    head = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        element("title", f"Streams, {quantities.plain_clock(seen.at_ms)} UTC"),
        element("style", STYLE),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', element('main', *body, foot)), lang='en')}\n"


def _section(name: str, content: Markup) -> Markup:
    return element("section", element("h2", name), content)


def _head(report: Report) -> Markup:
    said = f"As of {quantities.plain_clock(report.overview.at_ms)}. Times are UTC."
    return element("header", element("h1", "Streams"), element("p", said, class_="sub"))


def _window(report: Report) -> str:
    return f"the last {in_words(report.window.span_ms)}"


def _tiles(report: Report) -> Markup:
    streams = report.overview.streams
    buckets = [b for s in streams for b in report.buckets(s)]
    seen = report.overview
    needing = len(seen.troubled)
    rows = sum(b.rows_other + sum(b.changes.values()) for b in buckets)
    tiles = [
        _tile(len(streams), "stream" if len(streams) == 1 else "streams"),
        _tile(sum(1 for s in streams if s.status.has_data), "with data"),
        *(
            [_tile(len(seen.dynamic), "dynamic table" if len(seen.dynamic) == 1 else "dynamic tables")]
            if seen.dynamic
            else []
        ),
        *([_tile(len(seen.tasks), "task" if len(seen.tasks) == 1 else "tasks")] if seen.tasks else []),
        _tile(needing, "in trouble", "bad" if needing else ""),
        _tile(sum(b.consumed for b in buckets), "consumptions"),
        _tile(sum(b.failed for b in buckets), "failed", "bad" if any(b.failed for b in buckets) else ""),
        _tile(rows, "rows consumed"),
    ]
    return element("div", *tiles, class_="tiles")


def _tile(value: int, label: str, css: str = "") -> Markup:
    shown = f"{value:,}" if value < 100_000 else quantities.count(value)
    return element("div", element("b", shown), element("span", label), class_=f"tile {css}".strip(), title=f"{value:,}")


def _troubles(report: Report) -> Markup:
    found = report.overview.troubled
    if not found:
        return Markup("")
    items = [
        element(
            "li",
            element("b", line.name),
            ": ",
            quantities.shortened(line.trouble, 500),
            class_=None if line.is_bad else "warn",
        )
        for line in found[:TROUBLES_MAX]
    ]
    if len(found) > TROUBLES_MAX:
        more = f"… and {len(found) - TROUBLES_MAX} more; streamql doctor lists them"
        items.append(element("li", more, class_="warn"))
    return _section("What needs attention", element("ul", *items, class_="troubles"))


_STREAM_ORDER = ("name", "state", "origin", "lag", "amount", "deadline", "last")
_TASK_ORDER = ("name", "state", "lag", "amount", "deadline", "origin", "last")
_DYNAMIC_ORDER = ("name", "state", "lag", "amount", "deadline", "origin", "last")


def _table(listing: Listing, order: Sequence[str], anchor: str | None = None) -> Markup:
    """Returns a row a line. `anchor`: what the ids begin with of that to which the names are links; None: they are not links."""
    heads = [
        element("th", listing.subject.header[field], class_="num" if field in ("lag", "amount") else None)
        for field in order
    ]
    rows = [_row(line, order, anchor and f"#{anchor}{n}") for n, line in enumerate(listing.lines)]
    head = element("thead", element("tr", *heads, element("th", "last error")))
    return element("div", element("table", head, element("tbody", *rows)), class_="card flush scroll")


def _row(line: Line, order: Sequence[str], href: str | None) -> Markup:
    error = quantities.shortened(line.error, 200)
    cells = [_cell(line, field, href) for field in order]
    return element("tr", *cells, element("td", error, class_="says", title=quantities.shortened(line.error, 1000)))


def _cell(line: Line, field: str, href: str | None) -> Markup:
    text: str = getattr(line, field)
    if field == "name":
        name = text if href is None else element("a", text, href=href, title=text)
        return element("td", name, class_="name", title=text if href is None else None)
    if field in ("origin", "last"):
        is_append_only = field == "origin" and line.record.get("mode") == "APPEND_ONLY"
        return element("td", f"{text} (append only)" if is_append_only else text, class_="into", title=text)
    css = "num" if field in ("lag", "amount") else None
    if field == "state":
        return element("td", _pill(text, line.tone))
    if field in line.marks:
        return element("td", _pill(text, line.marks[field]), class_=css)
    short = text.partition(", ")[0] if field == "amount" else text
    return element("td", short, class_=css, title=None if short == text else text)


def _pill(said: str, css: str) -> Markup:
    return element("span", said, class_=f"pill {css}")


def _each(report: Report) -> Markup:
    listing, streams = report.overview.stream_listing, report.overview.streams
    consumed = {s.name for s in streams if report.buckets(s)}
    opened = {line.name for line in [x for x in listing.worst_first() if x.name in consumed][:OPEN_MAX]}
    pairs = enumerate(zip(streams, listing.lines, strict=True))
    return joined(*(_stream(report, n, s, line, line.name in opened) for n, (s, line) in pairs))


def _stream(report: Report, number: int, facts: StreamFacts, line: Line, is_open: bool) -> Markup:
    buckets = report.buckets(facts)
    consumed, failed = sum(b.consumed for b in buckets), sum(b.failed for b in buckets)
    said = counted(consumed, "consumption") + (f", {failed} failed" if failed else "")
    summary = element(
        "summary", element("b", line.name), _pill(line.state, line.tone), element("span", said, class_="sub")
    )
    inside = element("div", *_inside(report, facts, line, buckets), class_="inside")
    shown = element("details", summary, inside, id=f"s{number}", class_="stream")
    return Markup(shown.replace("<details ", "<details open ", 1)) if is_open else shown


def _inside(report: Report, facts: StreamFacts, line: Line, buckets: tuple[Bucket, ...]) -> list[Markup]:
    parts = [element("p", quantities.shortened(line.trouble, 500), class_="sub")] if line.trouble else []
    if not buckets:
        return [*parts, element("p", "Nothing was consumed in this time.", class_="quiet")]
    lag = element(
        "figure",
        element("h3", f"Lag: {facts.unit}s waiting, as each consumption found them"),
        charts.lag_chart(buckets, facts.status.lag_versions, report.window, facts.unit),
    )
    known = charts.has_changes(buckets)
    rows = element(
        "figure",
        element("h3", "Changes consumed, in rows by type" if known else "Rows written by consumptions"),
        charts.changes_chart(buckets, report.window),
    )
    violated = report.violations.get(facts.uuid, {})
    if violated:
        each = ", ".join(f"{name}: {counted(n, 'row')}" for name, n in violated.items())
        parts.append(element("p", f"Violated expectations: {each}.", class_="sub"))
    return [*parts, element("div", lag, rows, class_="charts"), _legend(buckets)]


def _legend(buckets: tuple[Bucket, ...]) -> Markup:
    items = [
        (css, change_type)
        for change_type, css in charts.CHANGE_STYLES
        if any(b.changes.get(change_type) for b in buckets)
    ]
    if any(b.rows_other for b in buckets):
        items.append(("other", "rows written, change types not in the ledger"))
    if any(b.failed for b in buckets):
        items.append(("failed", "consumption failed"))
    return element("div", *(element("span", element("i", class_=css), name) for css, name in items), class_="legend")
