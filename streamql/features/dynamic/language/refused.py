"""Clauses of other systems' dynamic tables and materialized views that streamql refuses, each with what to type instead."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor

Refused = tuple[tuple[tuple[str, ...], str, str], ...]
"""(keywords, why, hint) of each clause."""

_DELTA = ("a dynamic table is a Delta table in its schema's location", "leave the clause out")
_RETENTION = (
    "Delta tables have properties for their history",
    "write PROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 7 days')",
)
_NO_TAGS = ("tables have no tags", "write PROPERTIES ('key' = 'value')")
_NO_POLICIES = ("streamql has no policies", "leave the clause out, and filter the rows in the query")
_SCHEDULE = ("a schedule is an interval or a lag", "write REFRESH INTERVAL 10 MINUTE, or TARGET_LAG = '10 minutes'")
_PROCESS = ("refreshes run in the process and as the user that refreshes", "leave the clause out")

CREATED: Refused = (
    (
        ("ENABLE", "QUERY", "REWRITE"),
        "streamql does not rewrite queries",
        "name the table in the queries, and leave the clause out",
    ),
    (("DATA_RETENTION_TIME_IN_DAYS",), *_RETENTION),
    (("MAX_DATA_EXTENSION_TIME_IN_DAYS",), *_RETENTION),
    (("COPY", "TAGS"), *_NO_TAGS),
    (("COPY", "GRANTS"), "tables have no grants of their own", "leave COPY GRANTS out"),
    (("REQUIRE", "USER"), *_PROCESS),
    (("EXECUTE", "AS"), *_PROCESS),
    (("INITIALIZATION_WAREHOUSE",), *_PROCESS),
    (("WITH", "TAG"), *_NO_TAGS),
    (("TAG",), *_NO_TAGS),
    (("WITH", "ROW", "ACCESS"), *_NO_POLICIES),
    (("ROW", "ACCESS"), *_NO_POLICIES),
    (("WITH", "AGGREGATION"), *_NO_POLICIES),
    (("AGGREGATION",), *_NO_POLICIES),
    (("ROW", "FILTER"), *_NO_POLICIES),
    (("WITH", "ROW", "FILTER"), *_NO_POLICIES),
    (("USING",), *_DELTA),
    (("OPTIONS",), *_DELTA),
    (("STORED",), *_DELTA),
    (("LOCATION",), *_DELTA),
    (("ROW", "FORMAT"), *_DELTA),
    (("EXTERNAL_VOLUME",), *_DELTA),
    (("CATALOG",), *_DELTA),
    (("BASE_LOCATION",), *_DELTA),
    (("CLONE",), "dynamic tables are not cloned", "write AS and the query of the other table"),
    (("IMMUTABLE",), "a refresh may change every row", "leave the clause out"),
    (("FROZEN",), "a refresh may change every row", "leave the clause out"),
    (("ROW_TIMESTAMP",), "Delta tables keep no time for each row", "leave the clause out"),
    (("WITH", "STORAGE", "LIFECYCLE"), *_NO_POLICIES),
    (("STORAGE", "LIFECYCLE"), *_NO_POLICIES),
    (
        ("REFRESH", "USING"),
        "a refresh computes the query of the table",
        "make a stream on each source, and write the MERGE into a script for streamql run --when-has-data",
    ),
    (("BACKFILL",), "the first refresh computes all rows from the query", "leave the clause out"),
    (("SCHEDULE",), *_SCHEDULE),
    (("TRIGGER",), *_SCHEDULE),
    (("FRESHNESS",), *_SCHEDULE),
    (("SCHEDULER",), *_SCHEDULE),
)

_REPLACE = (
    "only the schedule, the refresh mode, the comment and the name can be altered",
    "CREATE OR REPLACE replaces the table",
)

ALTERED: Refused = (
    (("SWAP",), "names are changed one by one", "write RENAME TO for both, with a third name between"),
    (("SUSPEND", "RECLUSTER"), "Delta clusters rows in OPTIMIZE", "write SUSPEND to stop the schedule"),
    (("RESUME", "RECLUSTER"), "Delta clusters rows in OPTIMIZE", "write RESUME to start the schedule"),
    (("REFRESH", "COPY", "SESSION"), *_PROCESS),
    *(
        ((key,), *_REPLACE)
        for key in ("ADD", "ALTER", "AS", "CHANGE", "CLUSTER", "CLUSTERED", "DROP", "MODIFY", "REPLACE")
    ),
)

_NO_WAREHOUSE = ("no warehouse or cluster runs refreshes", "leave it out")

SETTINGS: Refused = (
    (("WAREHOUSE",), *_NO_WAREHOUSE),
    (("INITIALIZATION_WAREHOUSE",), *_NO_WAREHOUSE),
    (("VCLUSTER",), *_NO_WAREHOUSE),
    (("DATA_RETENTION_TIME_IN_DAYS",), *_REPLACE),
    (("MAX_DATA_EXTENSION_TIME_IN_DAYS",), *_REPLACE),
    (("TAG",), *_NO_TAGS),
    (("SCHEDULER",), *_SCHEDULE),
    *(((key,), *_REPLACE) for key in ("PROPERTIES", "TBLPROPERTIES", "INITIALIZE", "IMMUTABLE", "OWNER", "(")),
)
"""What ALTER … SET and UNSET do not set."""

MODIFIERS: dict[str, tuple[str, str]] = {
    "TRANSIENT": ("the history of a Delta table is needed for refreshes", "leave TRANSIENT out"),
    "TEMPORARY": ("a dynamic table is stored", "leave TEMPORARY out, and DROP the table when it is not needed"),
    "TEMP": ("a dynamic table is stored", "leave TEMP out, and DROP the table when it is not needed"),
    "SECURE": ("the definition is shown to every user", "leave SECURE out"),
    "ICEBERG": ("a dynamic table is a Delta table", "leave ICEBERG out"),
}
"""Words that other systems have between CREATE and TABLE or VIEW, with why and hint."""

OTHER_VERBS = ("ALTER", "REFRESH")
"""What other systems have in the place of REPLACE in CREATE OR REPLACE."""


def refuse(cursor: Cursor, clauses: Refused, verb: str = "") -> None:
    """Raises UNSUPPORTED_CLAUSE if one of the clauses comes next. `verb`: what the error puts before its keywords."""
    for keywords, why, hint in clauses:
        if cursor.at(*keywords):
            raise cursor.refused(" ".join((*([verb] if verb else []), *keywords)), why, hint)


def refuse_head(cursor: Cursor) -> None:
    """Raises UNSUPPORTED_CLAUSE if a word comes next that streamql does not have between CREATE and TABLE or VIEW."""
    if cursor.at("OR") and cursor.key(1) in OTHER_VERBS:
        raise cursor.refused(f"CREATE OR {cursor.key(1)}", "it is OR REPLACE here", "write CREATE OR REPLACE")
    for ahead in (0, 1):
        key = cursor.key(ahead)
        if key in MODIFIERS:
            why, hint = MODIFIERS[key]
            raise cursor.refused(key, why, hint, cursor.tokens[cursor.index + ahead])
