"""The texts of messages about queries: what the extension refuses, and how an incremental refresh computes operators."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "AGGREGATE": "aggregates rows (GROUP BY, or an aggregate function)",
        "CONSTANT_ROWS": "has rows of its own (VALUES, or a SELECT without FROM)",
        "COPY": "reads a table and a copy of its files, which has the same id",
        "CURRENT_TIME": "uses the current time",
        "DISTINCT": "has DISTINCT, or a UNION without ALL",
        "FILE_METADATA": "shows the column _metadata of a table",
        "FOREIGN_TABLE": "reads a table that is not a Delta table",
        "GENERATE": "makes several rows of one (explode, LATERAL VIEW)",
        "INEXACT_VALUE": "joins, compares or groups by sums or averages of FLOAT or DOUBLE, or by one of several equal values, such as "
        "strings of a collation: they depend on the order of rows",
        "JOIN_WITHOUT_EQUALITY": "has an outer, semi or anti join (also EXISTS, IN, NOT IN) that compares no column for equality",
        "KEY_COLUMN": "reads a table that lacks a column of the key by which its rows are recognized",
        "LIMIT": "has LIMIT or OFFSET",
        "NO_KEY": "has rows that cannot be told apart: it shows a column of a type that cannot be compared, and no key",
        "NON_DETERMINISTIC": "uses a function whose value differs from call to call",
        "ORDER_OF_ROWS": "uses a function whose value may depend on the order of rows",
        "OTHER_OPERATOR": "has a clause of another type",
        "OUTER_JOIN": "has an outer join",
        "SAMPLE": "has TABLESAMPLE",
        "SCALAR_SUBQUERY": "has a scalar subquery",
        "SEMI_JOIN": "has a semi join or an anti join",
        "SESSION_STATE": "uses the current user, schema or time zone, or a session variable",
        "SESSION_WINDOW": "groups by session_window()",
        "SET_OPERATION": "has INTERSECT or EXCEPT",
        "STREAM": "reads a stream",
        "SUBQUERY_VALUE": "shows or compares the value of IN (SELECT …), and does not use it as a condition",
        "SUBQUERY": "has a subquery in an expression (IN, EXISTS, or a scalar subquery)",
        "TEMPORARY_VIEW": "reads a temporary view",
        "TIME_TRAVEL": "reads a table at a fixed version or time",
        "UNCOMPARABLE_COLUMN": "joins tables and shows a column, or has a key, of a type such as MAP, which cannot be compared",
        "UNPARTITIONED_WINDOW": "has a window function without PARTITION BY",
        "USER_FUNCTION": "uses a function that a user wrote",
        "WINDOW": "has a window function",
    }
)

STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        "ALL_ROWS": "computes all rows again",
        "CHANGED_ROWS": "applies to the changed rows",
        "CHANGE_SET": "reads the changed rows",
        "GROUPS": "computes all rows of the affected groups again",
        "JOINED": "joins the changed rows of each side with the other side",
        "JOIN_KEYS": "computes all rows again whose join key a change affects",
        "LEFT_SIDE": "joins the changed rows of the left side with the right side",
        "RIGHT_SIDE": "joins the changed rows of the right side with the left side",
        "PARTITIONS": "computes all rows of the affected partitions again",
        "STATES": "adds the changed rows to the stored counts and sums",
        "STATES_AND_EXTREMA": "adds the changed rows to the stored values; computes groups again that lose their MIN or MAX",
        "UNCHANGED": "unchanged; a join above it may read its rows",
        "WHOLE": "needs a full refresh",
    }
)
"""How an incremental refresh computes an operator of the query. EXPLAIN REFRESH shows the text. The keys are those of RefreshWays.scala."""

ACCEPTED = "filters, projections, UNION ALL, inner and cross joins"

NOT_CURRENT_TABLES = frozenset(("COPY", "FILE_METADATA", "FOREIGN_TABLE", "STREAM", "TEMPORARY_VIEW", "TIME_TRAVEL"))
"""The reasons for which the query of a dynamic table is refused as well: it reads something other than the current version of a Delta
table."""


def reason_text(what: str) -> str:
    """Returns why a query is refused, for a message. `what`: a key of REFUSED; the name of a function may follow it after a space."""
    key, _, function = what.partition(" ")
    return f"{REFUSED[key]}: {function}()" if function else REFUSED[key]
