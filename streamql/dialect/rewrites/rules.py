"""The rules of streams, in one list."""

from __future__ import annotations

from streamql.dialect.rewrites.as_of import TABLE_AT_POINT
from streamql.dialect.rewrites.changes import CHANGE_QUERY
from streamql.dialect.rewrites.consume import STREAM_OPTIONS
from streamql.dialect.rewrites.dollar_names import DOLLAR_NAMES
from streamql.dialect.rewrites.merge import MERGE_COLUMNS, MERGE_FROM_STREAM
from streamql.dialect.rewrites.rejected import CHARACTER_TYPES, TABLE_PROPERTIES
from streamql.dialect.rewrites.rule import RewriteRule

RULES: tuple[RewriteRule, ...] = (
    CHANGE_QUERY,
    TABLE_AT_POINT,
    STREAM_OPTIONS,
    DOLLAR_NAMES,
    MERGE_FROM_STREAM,
    CHARACTER_TYPES,
    TABLE_PROPERTIES,
    MERGE_COLUMNS,
)
"""In the order in which they are asked, as `rewriter.py` says."""
