"""The table of metrics in docs/monitoring.md, from what features measure. `python -m tests.docs.reference` writes it."""

from __future__ import annotations

from streamql.engine.measures import Metric
from streamql.features.metrics.looks import every_metric
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "monitoring.md"
BEGIN, END = "<!-- metrics -->", "<!-- /metrics -->"
"""The comments between which the page has the table."""


def metric_table() -> str:
    """Returns the table as Markdown: a row for each metric, in the order of the page that is scraped."""
    lines = ["| metric | labels | meaning |", "|---|---|---|"]
    return "\n".join([*lines, *map(_row, every_metric())]) + "\n"


def with_table(page: str) -> str:
    """Returns a page with the present table between its two comments. Raises ValueError if it has not each of them once."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{metric_table()}\n{END}{after}"


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    assert (metric.type == "counter") == metric.name.endswith("_total")  # the page says so
    assert metric.name.removesuffix("_total").endswith(metric.unit)
    return f"| `{metric.name}` | {labels} | {metric.help} |"
