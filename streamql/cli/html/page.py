"""The page itself: what needs attention first, then dynamic tables, all streams, when they go stale, lineage, and each stream over time."""

from __future__ import annotations

from streamql.cli.html import charts
from streamql.cli.html.dag import dag
from streamql.cli.html.forecast import forecast
from streamql.cli.html.lineage import lineage
from streamql.cli.html.markup import Markup, element, joined
from streamql.cli.html.model import Report
from streamql.cli.html.style import STYLE
from streamql.cli.status import lines as status_lines
from streamql.console.render import quantities
from streamql.durations import in_words
from streamql.engine.ledger import Bucket
from streamql.engine.stream_facts import StreamFacts
from streamql.errors import counted
from streamql.features.dynamic import lines as dynamic_lines
from streamql.features.dynamic.refreshes.facts import DynamicFacts

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
        body += [
            _section("Dynamic tables", _dynamic_table(report)),
            _section(
                "How dynamic tables are made", element("div", dag(seen.dynamic, seen.at_ms), class_="card scroll")
            ),
        ]
    if seen.streams:
        body += [
            _section("Streams", _table(report)),
            _section("When streams go stale", element("div", forecast(seen), class_="card")),
            _section("Lineage", element("div", lineage(report), class_="card scroll")),
            _section(f"Over time, {_window(report)}", _each(report)),
        ]
    elif not seen.dynamic:
        body.append(element("p", "There are no streams here. CREATE STREAM s ON TABLE t makes one.", class_="card"))
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
    troubles = [line.trouble for line in status_lines.lines(seen)] + [
        line.trouble for line in dynamic_lines.lines(seen.dynamic, seen.at_ms)
    ]
    needing = sum(1 for trouble in troubles if trouble)
    rows = sum(b.rows_other + sum(b.changes.values()) for b in buckets)
    tiles = [
        _tile(len(streams), "stream" if len(streams) == 1 else "streams"),
        _tile(sum(1 for s in streams if s.status.has_data), "with data"),
        *(
            [_tile(len(seen.dynamic), "dynamic table" if len(seen.dynamic) == 1 else "dynamic tables")]
            if seen.dynamic
            else []
        ),
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
    seen = report.overview
    found = [
        (line.cells[0], line.trouble, line.state in ("stale", "invalid") or line.failed)
        for line in status_lines.lines(seen, worst_first=True)
        if line.trouble
    ]
    found += [
        (line.cells[0], line.trouble, line.state in ("failed", "late"))
        for line in dynamic_lines.lines(seen.dynamic, seen.at_ms, worst_first=True)
        if line.trouble
    ]
    if not found:
        return Markup("")
    items = [
        element("li", element("b", name), ": ", quantities.shortened(trouble, 500), class_=None if is_bad else "warn")
        for name, trouble, is_bad in found[:TROUBLES_MAX]
    ]
    if len(found) > TROUBLES_MAX:
        items.append(
            element("li", f"… and {len(found) - TROUBLES_MAX} more; streamql doctor lists them", class_="warn")
        )
    return _section("What needs attention", element("ul", *items, class_="troubles"))


_COLUMNS = (("stream", ""), ("state", ""), ("source", ""), ("lag", "num"), ("backlog", "num"), ("stale", ""),
            ("last consumption", ""), ("last error", ""))  # fmt: skip


def _table(report: Report) -> Markup:
    head = element("tr", *(element("th", name, class_=css or None) for name, css in _COLUMNS))
    rows = [_row(n, facts, report.overview.at_ms) for n, facts in enumerate(report.overview.streams)]
    table = element("table", element("thead", head), element("tbody", *rows))
    return element("div", table, class_="card flush scroll")


def _row(number: int, facts: StreamFacts, now_ms: int) -> Markup:
    line = status_lines.line_of(facts, now_ms)
    _, source, lag, backlog, state, stale, last = line.cells
    failure = facts.failure
    error = "" if failure is None else f"{quantities.ago(failure.ended_ms, now_ms)}: {failure.error or failure.outcome}"
    return element(
        "tr",
        element("td", element("a", facts.name, href=f"#s{number}", title=facts.name), class_="name"),
        element("td", _pill(state)),
        element("td", source + (" (append only)" if facts.mode == "APPEND_ONLY" else ""), class_="into", title=source),
        element("td", lag, class_="num"),
        element("td", backlog.partition(", ")[0], class_="num", title=backlog),
        element("td", _pill(stale, "soon") if line.stale_soon else stale),
        element("td", last, class_="into", title=last),
        element("td", quantities.shortened(error, 200), class_="says", title=quantities.shortened(error, 1000)),
    )


_DYNAMIC_COLUMNS = (("dynamic table", ""), ("state", ""), ("lag", "num"), ("target", "num"), ("next refresh", ""),
                    ("reads", ""), ("last refresh", ""), ("last error", ""))  # fmt: skip


def _dynamic_table(report: Report) -> Markup:
    head = element("tr", *(element("th", name, class_=css or None) for name, css in _DYNAMIC_COLUMNS))
    rows = [_dynamic_row(facts, report.overview.at_ms) for facts in report.overview.dynamic]
    return element("div", element("table", element("thead", head), element("tbody", *rows)), class_="card flush scroll")


def _dynamic_row(facts: DynamicFacts, now_ms: int) -> Markup:
    name, reads, lag, target, state, following, last = dynamic_lines.line_of(facts, now_ms).cells
    error = "" if facts.last is None or not facts.failures else facts.last.error or facts.last.outcome
    return element(
        "tr",
        element("td", name, class_="name", title=name),
        element("td", _pill(state, "held" if state == "empty" else state)),
        element("td", _pill(lag, "late") if facts.is_late else lag, class_="num"),
        element("td", target, class_="num"),
        element("td", following),
        element("td", reads, class_="into", title=reads),
        element("td", last, class_="into", title=last),
        element("td", quantities.shortened(error, 200), class_="says", title=quantities.shortened(error, 1000)),
    )


def _pill(said: str, css: str | None = None) -> Markup:
    return element("span", said, class_=f"pill {css or said}")


def _each(report: Report) -> Markup:
    order = {line.cells[0]: n for n, line in enumerate(status_lines.lines(report.overview, worst_first=True))}
    shown = sorted((s for s in report.overview.streams if report.buckets(s)), key=lambda s: order[s.name])[:OPEN_MAX]
    opened = {s.uuid for s in shown}
    return joined(*(_stream(report, n, s, s.uuid in opened) for n, s in enumerate(report.overview.streams)))


def _stream(report: Report, number: int, facts: StreamFacts, is_open: bool) -> Markup:
    buckets = report.buckets(facts)
    consumed, failed = sum(b.consumed for b in buckets), sum(b.failed for b in buckets)
    said = counted(consumed, "consumption") + (f", {failed} failed" if failed else "")
    summary = element("summary", element("b", facts.name), _pill(facts.state), element("span", said, class_="sub"))
    inside = element("div", *_inside(report, facts, buckets), class_="inside")
    shown = element("details", summary, inside, id=f"s{number}", class_="stream")
    return Markup(shown.replace("<details ", "<details open ", 1)) if is_open else shown


def _inside(report: Report, facts: StreamFacts, buckets: tuple[Bucket, ...]) -> list[Markup]:
    line = status_lines.line_of(facts, report.overview.at_ms)
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
