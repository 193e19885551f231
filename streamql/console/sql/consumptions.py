"""Writes what the run of a session has consumed into a file, for the program that started the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from streamql.catalog.tables import CONSUMPTIONS
from streamql.dialect import quote_string
from streamql.names import quote
from streamql.settings import CATALOG

if TYPE_CHECKING:
    from pyspark.sql import Row

    from streamql.console.sql.session import Session

NO_CATALOG = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
"""Spark's conditions for a lakehouse that never had a stream."""

COLUMNS = (
    "stream",
    "sequence",
    "consumption_id",
    "operation",
    "outcome",
    "target",
    "target_version",
    "from_version",
    "through_version",
    "positions",
    "changes",
    "rows_written",
    "guarantee",
    "unix_millis(started_at) AS started_ms",
    "unix_millis(ended_at) AS ended_ms",
    "details",
    "error",
)
"""What each line has of a row of the ledger: columns, and times in milliseconds since 1970."""


def write(session: Session, path: Path, run: str) -> int:
    """Writes a line of JSON for each row of the ledger that belongs to the run, the oldest first. Returns how many rows there are. Raises
    what reading the ledger raises, and OSError."""
    lines = [_line(row) for row in _rows(session, run)]
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def _rows(session: Session, run: str) -> list[Row]:
    """Returns the rows of the ledger; none if there is no catalog yet."""
    schema = session.sql(f"SET {CATALOG.key}").collect()[0][1]
    ledger = f"{quote('spark_catalog')}.{quote(schema)}.{CONSUMPTIONS}"
    text = (
        f"SELECT {', '.join(COLUMNS)} FROM {ledger} "
        f"WHERE get_json_object(details, '$.run') = {quote_string(run)} ORDER BY ended_at, stream, sequence"
    )
    try:
        return session.sql(text).collect()
    except PySparkException as e:
        if e.getCondition() in NO_CATALOG:
            return []
        raise


def _line(row: Row) -> str:
    found = row.asDict()
    for name in ("details", "positions"):
        found[name] = json.loads(found[name]) if found[name] else None
    return json.dumps(found, ensure_ascii=False) + "\n"
