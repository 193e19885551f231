"""Sequence info as an SQL expression, which Spark evaluates for each record. Pure: a text is made, nothing is run."""

from __future__ import annotations

import re

from streamql.dialect import quote_string
from streamql.features.tablestore.formats.sequence import FORMAT
from streamql.shared import constants

_PARTS = re.compile(r"%0(?P<width>\d+)d|%s|(?P<text>[^%]+)")


def sequence_sql(version: str, time_ms: str, row: str, shard: str, column: str) -> str:
    """Returns the SQL expression for `sequence.SequenceInfo` as text. All arguments are SQL expressions: the version of the commit and its
    time in milliseconds since 1970; the numbers of the record and of the tuple in it, as BIGINT; the id of the shard."""
    values = iter((version, f"{time_ms} * 1000L", row, shard, column))
    parts = []
    for part in _PARTS.finditer(FORMAT):
        if part["text"]:
            parts.append(quote_string(part["text"]))
        else:
            parts.append(padded_sql(next(values), int(part["width"])) if part["width"] else next(values))
    return f"concat({', '.join(parts)})"


def padded_sql(number: str, width: int) -> str:
    """Returns the SQL expression for the text of a number with zeros before it, up to a width. To be used in a session that has streamql's
    extension."""
    return f"{constants('internals')['padded']}({number}, {width})"
