"""`python -m tests.docs.reference` writes docs/configuration.md, from `streamql.settings`, and docs/python-api.md, from docstrings."""

from __future__ import annotations

from streamql import settings
from streamql.extension.host import JAVA_NEEDED
from streamql.extension.settings import EXTENSIONS
from tests.docs import api
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "configuration.md"

TEXT = """\
# Configuration

## Settings of a session

Set for a session with `SET key = value`, for all of them in `spark-defaults.conf`, with `--conf key=value`, or in
`SparkSession.builder.config(…)`. Durations are `500ms`, `90s`, `2min`, `1h`, `14 days`.

{settings}

```sql
SET spark.streamql.busyTimeout = 10s;
RESET spark.streamql.busyTimeout;
```

`spark.streamql.catalog` and `spark.streamql.catalogLocation` say where all streams are: set in the middle of a session, they make it look
elsewhere from the next statement on. `spark.streamql.python` is read when the JVM first needs it, and `spark.streamql.connectors` when
Spark starts.

## What gives a Spark the extension

`streamql conf` prints it for the machine it runs on; `streamql.configure(builder)` and `streamql.session()` do it themselves.

| key | value |
|---|---|
| `spark.sql.extensions` | `{extensions}`, in this order |
| `spark.sql.catalog.spark_catalog` | `org.apache.spark.sql.delta.catalog.DeltaCatalog` |
| `spark.sql.sources.default` | `delta`, so that CREATE TABLE without USING makes what a stream can be made on |
| `spark.driver.extraClassPath`, `spark.jars` | Delta's jars and the extension's, by path |
| `spark.streamql.python` | the Python that answers where Spark was not started from Python |

## Properties of a source

```sql
CREATE TABLE orders (id INT, item STRING, amount INT);
ALTER TABLE orders SET PROPERTIES ('change_tracking' = 'true', 'data_retention_days' = '14');
```

| property | in Delta's words | |
|---|---|---|
| `'change_tracking' = 'true'` | `delta.enableRowTracking`, `delta.enableInCommitTimestamps`, `delta.enableDeletionVectors` | \
needed before a stream is made; history starts there. Deletion vectors that a user switched off stay off |
| `'data_retention_days' = 'n'` | `delta.deletedFileRetentionDuration`, `delta.logRetentionDuration` | how long a stream may be \
left unread; both are set, so less than 30 days shortens the log. Delta keeps removed files 7 days and the log 30 unless told otherwise |

## Properties of a stream

```sql
CREATE TABLE STREAM new_orders ON TABLE orders
WITH (TABLE_STREAM_MODE = APPEND_ONLY, SHOW_INITIAL_ROWS = TRUE, COMMENT = 'orders, as they come in');
```

| property | default | |
|---|---|---|
| `TABLE_STREAM_MODE` | `STANDARD` | `STANDARD`: net changes of every type. `APPEND_ONLY`: rows that were inserted, \
whatever happened to them later. As clauses \
behind the table's name, not in WITH: `APPEND_ONLY = TRUE`, `INSERT_ONLY = TRUE` |
| `SHOW_INITIAL_ROWS` | `FALSE` | the rows that are there already come first, as INSERTs, until the first \
consumption |
| `COMMENT` | none | |

## Environment

| variable | |
|---|---|
| `STREAMQL_CACHE` | where jars and class data are kept (`$XDG_CACHE_HOME/streamql`, else `~/.cache/streamql`) |
| `STREAMQL_IVY_SETTINGS` | an Ivy settings file, for fetching jars through a proxy or a mirror of one's own |
| `STREAMQL_HISTORY` | the shell's history (`history` in the cache) |
| `STREAMQL_LOG_LEVEL` | the level of the embedded session's log4j (`error`) |
| `SPARK_HOME` | another Spark than PySpark's own; it must be the same version |
| `JAVA_HOME` | the Java runtime: {java} |
| `PAGER` | what the shell shows long results with (`less`) |
"""


def reference() -> str:
    """The page."""
    lines = ["| key | default | |", "|---|---|---|"]
    for s in settings.ALL:
        default = "none" if s.default is None else f"`{s.default}`"
        lines.append(f"| `{s.key}` | {default} | {s.meaning} |")
    return TEXT.format(java=JAVA_NEEDED, settings="\n".join(lines), extensions=",".join(EXTENSIONS))


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    api.PAGE.write_text(api.api(), encoding="utf-8")
