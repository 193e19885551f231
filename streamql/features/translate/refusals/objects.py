"""Statements of other systems that Spark and streamql do not have: by their first words, with the reason and what to use instead."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from streamql.features.translate.model import NotTranslatedError, System
from streamql.features.translate.wording import (
    KAFKA_TABLE,
    LEAVE_OUT,
    NO_KAFKA_READER,
    NO_RESULTS,
    NO_SEQUENCES,
    NO_STAGES,
    SEQUENCE_HINT,
    SESSION,
)

_PERMISSIONS = ("permissions are those of Spark's catalog and of the storage", "grant there what the statement grants")
_COMPUTE = ("Spark has no warehouses: the session's own cluster runs every statement", LEAVE_OUT)
_FILES = (
    NO_STAGES,
    "INSERT INTO t SELECT … FROM json.`path/*.json`",
)
_CODE = (
    "Spark does not run procedures and functions of this language",
    "use a job of your own, or Spark's CREATE FUNCTION",
)
_TASKS = (
    "streamql has no such function or object of tasks",
    "SHOW TASKS, SHOW TASK HISTORY, and ALTER TASK … RESUME for each task",
)
_SCRIPTING = (
    "Spark does not run the source system's scripting language",
    "write a BEGIN … END block of Spark's, or a job of your own",
)
_SESSION = (SESSION, LEAVE_OUT)
_UNDROP = (
    "Delta Lake does not restore dropped tables",
    "RESTORE TABLE t TO VERSION AS OF n restores the rows of a table that exists",
)
_ALERTS = (
    "streamql sends no notifications",
    "streamql report, or the exit code of streamql doctor, for your own alerts",
)
_HISTORY = (
    "Spark does not have this history of the source system",
    "SHOW DYNAMIC TABLE REFRESH HISTORY, or SELECT * FROM streamql.consumptions",
)
_POLICIES = ("Spark has no such object", "leave the statement out, and filter in a view")
_STATISTICS = (
    "Spark analyzes no Delta table, and Delta Lake writes the statistics of each file with its rows",
    LEAVE_OUT,
)
_INDEXES = ("Delta Lake has no indexes", "CLUSTER BY the column, and OPTIMIZE the table")

_OBJECTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("WAREHOUSE", "VCLUSTER", "COMPUTE", "CLUSTER"), _COMPUTE),
    **dict.fromkeys(("ROLE", "USER", "SHARE", "ACCOUNT", "NETWORK", "DATABASE ROLE"), _PERMISSIONS),
    **dict.fromkeys(("STAGE", "PIPE", "FILE", "VOLUME", "STORAGE"), _FILES),
    **dict.fromkeys(("PROCEDURE", "FUNCTION", "AGGREGATE"), _CODE),
    **dict.fromkeys(("TASK", "TASKS"), _TASKS),
    **dict.fromkeys(("ALERT", "NOTIFICATION", "API", "SECURITY", "INTEGRATION"), _ALERTS),
    **dict.fromkeys(("MASKING", "ROW", "TAG", "RESOURCE", "POLICY", "SYNONYM"), _POLICIES),
    **dict.fromkeys(("INDEX", "BLOOMFILTER", "INVERTED", "VECTOR", "AGGREGATING", "NGRAM"), _INDEXES),
    "SEQUENCE": (NO_SEQUENCES, SEQUENCE_HINT),
    "SESSION": _SESSION,
    "CONNECTION": (
        "Spark has no connections: keys of a storage are settings of the session",
        LEAVE_OUT,
    ),
    "EVENT": ("Spark has no event tables", LEAVE_OUT),
    "HYBRID": ("Spark has no hybrid tables", "CREATE TABLE … USING delta"),
    "ICEBERG": ("streams need Delta tables", "CREATE TABLE … USING delta"),
    "EXTERNAL": (
        "streamql's external tables are Kafka topics",
        "CREATE TABLE … USING json LOCATION 'path', without a stream",
    ),
}
_VERBS = ("CREATE", "ALTER", "DROP", "SHOW", "DESC", "DESCRIBE", "USE")
_MODIFIERS = frozenset(("OR", "REPLACE", "TEMPORARY", "TEMP", "TRANSIENT", "SECURE", "IF", "NOT", "EXISTS"))
_FIRST_WORDS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("GRANT", "REVOKE"), _PERMISSIONS),
    **dict.fromkeys(("COPY", "PUT", "GET", "LIST", "LS", "REMOVE", "RM", "PRESIGN"), _FILES),
    **dict.fromkeys(("CALL", "RETURN"), _CODE),
    **dict.fromkeys(("DECLARE", "LET", "EXECUTE", "FOR", "WHILE", "IF"), _SCRIPTING),
    **dict.fromkeys(("UNDROP", "FLASHBACK"), _UNDROP),
    **dict.fromkeys(("UNSET", "KILL"), _SESSION),
    "ANALYZE": _STATISTICS,
    "BUILD": _INDEXES,
}
_KAFKA = ("EXTERNAL", "STORAGE")


@dataclass(frozen=True)
class _Phrase:
    """A part of a statement that names something of the source system's own."""

    key: str
    reason: tuple[str, str]


_PHRASES = (
    _Phrase("TASK_HISTORY", _TASKS),
    _Phrase("TASK_DEPENDENTS", _TASKS),
    _Phrase("SYSTEM$TASK_HISTORY", _TASKS),
    _Phrase("SYSTEM$TASK_DEPENDENTS_ENABLE", _TASKS),
    _Phrase("DYNAMIC_TABLE_REFRESH_HISTORY", _HISTORY),
    _Phrase("DYNAMIC_TABLE_GRAPH_HISTORY", _HISTORY),
    _Phrase("DYNAMIC_TABLES", ("Spark does not have this list of the source system", "SHOW DYNAMIC TABLES")),
    _Phrase(
        "GET_DDL",
        ("Spark has no such function", "SHOW CREATE STREAM s, SHOW CREATE DYNAMIC TABLE d, DESCRIBE TABLE EXTENDED t"),
    ),
    _Phrase("READ_KAFKA", (NO_KAFKA_READER, KAFKA_TABLE)),
    _Phrase(
        "INFORMATION_SCHEMA", ("Spark has no INFORMATION_SCHEMA", "SHOW TABLES, SHOW STREAMS, or streamql.streams")
    ),
    _Phrase("ACCOUNT_USAGE", _HISTORY),
    _Phrase("RESULT_SCAN", (NO_RESULTS, "save the result by CREATE TABLE … AS")),
    _Phrase(
        "SESSION_CONFIGS",
        ("a refresh of a dynamic table takes no parameters", "filter in the query by columns of its tables"),
    ),
)


def check_names(keys: list[str]) -> None:
    """Raises NotTranslatedError if a statement of any type uses what only the source system has."""
    for phrase in _PHRASES:
        if phrase.key in keys:
            raise _refused(phrase.key, phrase.reason)
    snapshots = next((key for key, after in pairwise(keys) if key.startswith("FUSE_") and after == "("), None)
    if snapshots is not None:
        raise _refused(snapshots, ("Delta tables have versions, not snapshots and segments", "DESCRIBE HISTORY t"))
    other = next((key for key in keys if key.startswith("SYSTEM$") and not key.startswith("SYSTEM$STREAM_")), None)
    if other is not None:
        raise _refused(other, ("Spark does not have this function of the source system", "leave it out"))


def check_objects(keys: list[str], system: System) -> None:
    """Raises NotTranslatedError if the tokens' keys begin a statement without a counterpart."""
    first = keys[0] if keys else ""
    if first == "UNDROP" and keys[1:] and keys[1] in ("DYNAMIC", "MATERIALIZED"):
        raise _refused(first, (_UNDROP[0], "create it again: it holds the rows of its query"))
    if first in _FIRST_WORDS:
        raise _refused(first, _FIRST_WORDS[first])
    if first == "BEGIN" and len(keys) > 1 and keys[1] not in ("TRANSACTION", "TRAN", "WORK", "NAME"):
        raise _refused("BEGIN … END", _SCRIPTING)
    if first in _VERBS:
        _check_object(keys, system)


def _check_object(keys: list[str], system: System) -> None:
    named = next((key for key in keys[1:9] if key not in _MODIFIERS), "")
    if named not in _OBJECTS or (system is System.CLICKZETTA and named in _KAFKA):
        return
    if keys[0] == "SHOW" and named == "EXTERNAL":
        return
    raise _refused(f"{keys[0]} {named}", _OBJECTS[named])


def _refused(what: str, reason: tuple[str, str]) -> NotTranslatedError:
    return NotTranslatedError(f"{what}: {reason[0]}", reason[1])
