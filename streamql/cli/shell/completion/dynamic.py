"""What completes statements about dynamic tables and materialized views. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamql.cli.shell.completion.scope import Place
from streamql.cli.shell.snapshot import RelationType

TYPES: dict[tuple[str, ...], RelationType] = {
    ("DYNAMIC", "TABLE"): "dynamic table",
    ("MATERIALIZED", "VIEW"): "materialized view",
}
VERBS = ("CREATE", "DROP", "ALTER", "REFRESH", "VERIFY", "EXPLAIN", "DESC", "DESCRIBE", "SHOW")

SCHEDULES = ("TARGET_LAG = '10 minutes'", "TARGET_LAG = DOWNSTREAM", "REFRESH INTERVAL 10 MINUTE")
MODES = ("REFRESH_MODE = AUTO", "REFRESH_MODE = FULL")
FIRST_ROWS = {
    "dynamic table": ("INITIALIZE = ON_SCHEDULE", "INITIALIZE = ON_CREATE"),
    "materialized view": ("BUILD DEFERRED", "BUILD IMMEDIATE"),
}
CREATE_CLAUSES = (*SCHEDULES, *MODES, "COMMENT ''", "PARTITIONED BY (", "CLUSTER BY (", "PROPERTIES (", "AS SELECT")
ALTER_CLAUSES = (
    "SUSPEND", "RESUME", "REFRESH", *(f"SET {text}" for text in (*SCHEDULES, *MODES)), "SET COMMENT = ''", "UNSET COMMENT",
    "UNSET SCHEDULE", "RENAME TO",
)  # fmt: skip
HISTORY_CLAUSES = ("FOR", "WHERE", "LIMIT")


@dataclass(frozen=True)
class Wanted:
    """What may stand at the cursor: names of a type, None: none; and keywords or clauses."""

    type: RelationType | None = None
    keywords: Sequence[str] = ()
    clauses: Sequence[str] = ()


def wanted(here: Place) -> Wanted | None:
    """Returns what may stand at the cursor. None: the statement is not one about dynamic tables, or the cursor is in its query."""
    keys = [token.key for token in here.before]
    found = _head(keys)
    if found is None or keys[-1] == "=":  # the words that follow others are data
        return None
    type_, rest = found
    if keys[0] == "CREATE":
        return _in_create(type_, rest, is_replace="OR" in keys[:3])
    if "HISTORY" in rest:
        return Wanted(type_) if rest[-1] in ("FOR", "OF") else Wanted(clauses=HISTORY_CLAUSES)
    if rest in ([], ["IF", "EXISTS"]):
        if keys[0] == "SHOW" and keys[1] != "CREATE":
            return Wanted(keywords=("REFRESH HISTORY",))
        return Wanted(type_, ("IF EXISTS",) if not rest and keys[0] in ("DROP", "ALTER") else ())
    return Wanted(clauses=ALTER_CLAUSES if keys[0] == "ALTER" else ())


def _head(keys: Sequence[str]) -> tuple[RelationType, list[str]] | None:
    """Returns the type that a statement is about, and the tokens behind its two words."""
    if not keys or keys[0] not in VERBS:
        return None
    words = 1
    if list(keys[1:3]) == ["OR", "REPLACE"]:
        words = 3
    elif list(keys[:2]) in (["EXPLAIN", "REFRESH"], ["SHOW", "CREATE"]):
        words = 2
    type_ = TYPES.get(tuple(keys[words : words + 2]))
    return None if type_ is None else (type_, list(keys[words + 2 :]))


def _in_create(type_: RelationType, rest: Sequence[str], *, is_replace: bool) -> Wanted | None:
    if "AS" in rest:
        return None
    if not rest:
        return Wanted(keywords=() if is_replace else ("IF NOT EXISTS",))
    is_named = rest[0] != "IF" or len(rest) > 3
    is_open = rest.count("(") > rest.count(")")
    return Wanted(clauses=(*CREATE_CLAUSES, *FIRST_ROWS[type_]) if is_named and not is_open else ())
