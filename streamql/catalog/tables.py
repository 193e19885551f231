"""The SQL of the catalog: one Delta table of events, which only streamql writes, and views over it for users."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from streamql.dialect import quote_string
from streamql.names import quote
from streamql.registered import registered
from streamql.shared import constants

VERSION_KEY = constants("properties")["catalogVersion"]
VERSION = 1

EVENTS, STREAMS, CONSUMPTIONS = "events", "streams", "consumptions"


@dataclass(frozen=True)
class EventView:
    """A view over the events of a feature. `columns`: its columns, as expressions over those of the table of events, or by their name.
    `event`: the events that it shows. They belong to no stream, so their `stream_id` is NULL."""

    comment: str
    event: str
    columns: Mapping[str, str]


def _of_features() -> dict[str, EventView]:
    """Returns the views that features add, by name."""
    return {name: view for of_feature in registered("event_views") for name, view in of_feature().items()}


def view_names() -> tuple[str, ...]:
    """Returns the names of all views over the events."""
    return (STREAMS, CONSUMPTIONS, *_of_features())


def is_history() -> str:
    """Returns the condition for the events that users read as history, and that are deleted when they are old."""
    names = ("consumed", "released", *(view.event for view in _of_features().values()))
    return f"event IN ({', '.join(map(quote_string, names))})"


IS_CONSUMPTION = "event IN ('consumed', 'released')"
"""The condition for the events that are rows of the ledger."""

EVENT_COLUMNS = (
    ("stream_id", "STRING"),
    ("sequence", "BIGINT"),
    ("event", "STRING"),
    ("stream", "STRING"),
    ("source", "STRING"),
    ("source_id", "STRING"),
    ("mode", "STRING"),
    ("comment", "STRING"),
    ("definition", "STRING"),
    ("offset_version", "BIGINT"),
    ("consumption_id", "STRING"),
    ("from_version", "BIGINT"),
    ("through_version", "BIGINT"),
    ("statement", "STRING"),
    ("operation", "STRING"),
    ("target", "STRING"),
    ("target_path", "STRING"),
    ("target_version", "BIGINT"),
    ("guarantee", "STRING"),
    ("rows_written", "BIGINT"),
    ("changes", "STRING"),
    ("metrics", "STRING"),
    ("user_name", "STRING"),
    ("host", "STRING"),
    ("pid", "BIGINT"),
    ("started_at", "TIMESTAMP_LTZ"),
    ("ended_at", "TIMESTAMP_LTZ"),
    ("outcome", "STRING"),
    ("error", "STRING"),
)
"""The table has one row for each event and stream. `from_version` and `through_version`: the interval (from, through] that a consumption
took; NULL if the source has several parts."""

OPTIONAL_COLUMNS = (("positions", "STRING"), ("details", "STRING"))
"""Columns that the table of an earlier streamql may lack; rows are then written without them. `positions`: JSON [from, through] of a
consumption whose source has several parts. `details`: JSON of further properties of a consumption, such as mode and reason of a refresh."""


def columns_ddl() -> str:
    """Returns the columns of the table of events, as DDL."""
    return ", ".join(f"{name} {sql_type}" for name, sql_type in (*EVENT_COLUMNS, *OPTIONAL_COLUMNS))


JSON_TYPES = {"STRING": "string", "BIGINT": "long", "TIMESTAMP_LTZ": "timestamp"}
"""The names that Delta's JSON has for the types of EVENT_COLUMNS."""
_LOCAL_TIME = "timestamp_ntz"


def misfit(schema: Mapping[str, Any]) -> str | None:
    """Checks that a table's schema (Delta's JSON) has the columns that events need, with the right types. Returns a sentence about the
    first column that is missing or wrong; None: all are right. Further columns are allowed."""
    wrong = _wrong(schema)
    return f"column {wrong[0][0]} is no {wrong[0][1]}" if wrong else None


def has_local_times(schema: Mapping[str, Any]) -> bool:
    """Returns whether only the times of a table's schema are wrong, because they have no time zone. An earlier streamql created such a
    table if spark.sql.timestampType was TIMESTAMP_NTZ, and then could not write it."""
    there = _types(schema)
    wrong = _wrong(schema)
    return bool(wrong) and all(
        sql_type == "TIMESTAMP_LTZ" and there.get(name) == _LOCAL_TIME for name, sql_type in wrong
    )


def _types(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in schema["fields"]}


def _wrong(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    there = _types(schema)
    present = [(name, sql_type) for name, sql_type in OPTIONAL_COLUMNS if name in there]
    return [
        (name, sql_type) for name, sql_type in (*EVENT_COLUMNS, *present) if there.get(name) != JSON_TYPES[sql_type]
    ]


def events_name(schema: str, path: str | None) -> str:
    """Returns how SQL names the table of events: by its name, or, if the catalog is shared by path, by its path."""
    return f"delta.{quote(path)}" if path else f"{quote('spark_catalog')}.{quote(schema)}.{EVENTS}"


def create_events(schema: str, path: str | None) -> str:
    """Returns the statement that creates the table of events unless it exists."""
    # A checkpoint each 100 commits, because events are many and small: Delta reads the state from the newest checksum or checkpoint.
    return (
        f"CREATE TABLE IF NOT EXISTS {events_name(schema, path)} ({columns_ddl()}) USING delta "
        "COMMENT 'streamql: what happened to streams; written by streamql only' TBLPROPERTIES ("
        f"'{VERSION_KEY}' = '{VERSION}', 'delta.feature.domainMetadata' = 'supported', 'delta.checkpointInterval' = '100', "
        # Short retention: only a user's RESTORE needs older versions. Checkpoints list removed files for as long as they are kept. On a
        # local file system, Delta lists all commits of the log for each query of a view.
        "'delta.deletedFileRetentionDuration' = 'interval 1 day', 'delta.logRetentionDuration' = 'interval 1 day', "
        "'delta.enableInCommitTimestamps' = 'true')"
    )


def create_view(schema: str, path: str | None, view: str, columns: Collection[str], *, replace: bool) -> str:
    """Returns the statement that creates a view unless it exists; with `replace`, it replaces an existing one. `columns`: those of
    OPTIONAL_COLUMNS that the table of events has."""
    comment, query = views(schema, path, columns)[view]
    name = f"{quote('spark_catalog')}.{quote(schema)}.{view}"
    create = "CREATE OR REPLACE VIEW" if replace else "CREATE VIEW IF NOT EXISTS"
    return f"{create} {name} COMMENT 'streamql: {comment}' AS {query}"


def views(schema: str, path: str | None, columns: Collection[str]) -> dict[str, tuple[str, str]]:
    """Returns {name of a view: (its comment, its query)}. `columns`: those of OPTIONAL_COLUMNS that the table of events has."""
    return {
        STREAMS: ("the streams there are", _streams_query(schema, path)),
        CONSUMPTIONS: ("the ledger of consumptions", _consumptions_query(schema, path, columns)),
        **{name: (view.comment, _events_query(schema, path, view, columns)) for name, view in _of_features().items()},
    }


def _events_query(schema: str, path: str | None, view: EventView, columns: Collection[str]) -> str:
    """Returns the query of a view of a feature."""
    optional = [name if name in columns else f"CAST(NULL AS {kind}) AS {name}" for name, kind in OPTIONAL_COLUMNS]
    every = ", ".join([*(name for name, _ in EVENT_COLUMNS), *optional])
    shown = ", ".join(f"{expression} AS {name}" for name, expression in view.columns.items())
    return f"SELECT {shown} FROM (SELECT {every} FROM {events_name(schema, path)}) WHERE event = {quote_string(view.event)}"


def _streams_query(schema: str, path: str | None) -> str:
    """Returns the query of the view of the streams, each with its offset."""
    return (
        "SELECT stream_id, stream AS name, mode, source, source_id, offset_version, comment, definition, sequence, ended_at AS changed_at "
        f"FROM (SELECT *, row_number() OVER (PARTITION BY stream_id ORDER BY sequence DESC) AS newest FROM {events_name(schema, path)} "
        "WHERE stream_id IS NOT NULL) WHERE newest = 1 AND event <> 'dropped'"
    )


_OUTCOME = "CASE outcome WHEN 'UNDECIDED' THEN 'IN_DOUBT' WHEN 'UNFINISHED' THEN 'PARTIALLY_COMMITTED' ELSE outcome END"
"""The outcome by its present name. Rows of earlier releases have former names of two outcomes."""


def _consumptions_query(schema: str, path: str | None, columns: Collection[str]) -> str:
    """Returns the query of the view of the ledger: which statement took which interval of which stream into which version of its target."""
    optional = ", ".join(
        name if name in columns else f"CAST(NULL AS {sql_type}) AS {name}" for name, sql_type in OPTIONAL_COLUMNS
    )
    return (
        f"SELECT stream, sequence, from_version, through_version, {_OUTCOME} AS outcome, operation, target, target_version, guarantee, "
        "from_json(changes, 'MAP<STRING, BIGINT>') AS changes, rows_written, metrics, "
        "statement, user_name, host, pid, started_at, ended_at, error, stream_id, consumption_id, target_path, "
        f"{optional} FROM {events_name(schema, path)} WHERE {IS_CONSUMPTION}"
    )
