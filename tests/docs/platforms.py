"""The table of platforms in docs/compatibility.md, from `streamql/shared/platforms.json`. `python -m tests.docs.reference` writes it."""

from __future__ import annotations

from streamql.extension.platforms import Platform, platforms
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- platforms -->", "<!-- /platforms -->"
"""The comments between which the page has the table."""


def platform_table() -> str:
    """Returns the table as Markdown: a row for each platform, by Spark; of one Spark, the newest Delta Lake comes first."""
    lines = ["| Spark | Delta Lake | Java | Kafka connector, client | Hadoop, SDK for S3 |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *map(_row, platforms())]) + "\n"


def with_table(page: str) -> str:
    """Returns a page with the present table between its two comments. Raises ValueError if it has not each of them once."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{platform_table()}\n{END}{after}"


def _row(platform: Platform) -> str:
    cells = (
        f"{platform.spark}, from {platform.oldest} on; tests: {platform.spark_version}",
        f"{platform.delta}; tests: {platform.delta_version}",
        ", ".join(map(str, platform.java)),
        f"{platform.kafka['spark']}, {platform.kafka['clients']}",
        f"{platform.s3['hadoop']}, {platform.s3['sdk']}",
    )
    return f"| {' | '.join(cells)} |"
