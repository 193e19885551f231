"""SQL fixtures, and the streams and columns that the tests agree on.

A fixture file has blocks with `====` between them; in a block, `---->` stands between a text and what is expected of it.
"""

from __future__ import annotations

from pathlib import Path

from streamql.dialect import might_be_ours
from streamql.dialect.text.tokens import NameParts

FOLDER = Path(__file__).parent / "fixtures"
STREAMS = {"s", "u2", "test_table_offset_stream"}


def load(name: str) -> list[tuple[str, str]]:
    """The blocks of a fixture file, without the blank lines around them."""
    blocks = (FOLDER / name).read_text("utf-8").split("\n====\n")
    pairs = (block.partition("\n---->\n") for block in blocks)
    return [(before.strip("\n"), after.strip("\n")) for before, _, after in pairs]


def is_stream(parts: NameParts) -> bool:
    """Whether the last part is one of a few names."""
    return parts[-1].lower() in STREAMS


def columns_of(_: NameParts) -> list[str]:
    """The columns of every table: seed 002's."""
    return ["id", "name", "age"]


def is_asked_for(text: str) -> bool:
    """Whether the extension may ask Python about a text: by the prefilter, or of a MERGE by its plan (`Merges.scala`)."""
    return might_be_ours(text) or "MERGE" in text.upper()
