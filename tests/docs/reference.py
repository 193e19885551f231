"""`python -m tests.docs.reference` writes docs/configuration.md, from `streamql.settings`, and docs/python-api.md, from docstrings. It also
writes the tables of platforms in docs/compatibility.md and of metrics in docs/monitoring.md."""

from __future__ import annotations

from streamql import settings
from streamql.extension.host import JAVA_NEEDED
from streamql.extension.settings import EXTENSIONS
from tests.docs import api, metrics, platforms
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "configuration.md"

TEXT = """\
# Configuration

## Settings of a session

`SET key = value` sets a key for one session. To set a key for all sessions, use `spark-defaults.conf`, `--conf key=value` or
`SparkSession.builder.config(…)`.

Durations have units, from long to short: `500ms`, `90s`, `5min`, `1h 30min`, `14 days`, `2 weeks`. A number without a unit means seconds,
but `spark.streamql.ledgerRetention` and `spark.streamql.maxRetentionExtension` refuse it with INVALID_ARGUMENT.

A value that a setting does not take is refused at once with INVALID_ARGUMENT, and so is an unknown key that begins with `spark.streamql.`:
by SET, `--conf`, `streamql.session()`, and when Spark starts. `spark.conf.set(…)` of Python and of Spark Connect refuses such values, too.
It accepts an unknown key, which the next statement of streamql then refuses.

{settings}

```sql
SET spark.streamql.busyTimeout = 10s;
RESET spark.streamql.busyTimeout;
```

`spark.streamql.catalog` and `spark.streamql.catalogLocation` name the catalog. If you change them during a session, the next statement uses
the other catalog. `spark.streamql.python` and `spark.streamql.connectors` are set when Spark starts, and SET refuses them.

## Settings that install the extension

`streamql conf` prints these settings for the machine that it runs on. `streamql.configure(builder)` and `streamql.session()` set them.
With `--spark` and `--delta`, `streamql conf` prints them for a Spark of another machine: see [managed platforms](managed-platforms.md).

| key | value |
|---|---|
| `spark.sql.extensions` | `{extensions}`, in this order |
| `spark.sql.catalog.spark_catalog` | `org.apache.spark.sql.delta.catalog.DeltaCatalog` |
| `spark.sql.sources.default` | `delta`, so that CREATE TABLE without USING creates a table that can have a stream |
| `spark.driver.extraClassPath`, `spark.jars` | the paths of the extension's jar for \
[this Spark and Delta Lake](compatibility.md#versions), and of Delta's jars unless the Spark has them. \
If `spark.jars` or `spark.jars.packages` names Delta Lake, only `spark.jars` is set |
| `spark.streamql.python` | the Python of the sidecar, for a Spark that Python did not start |

## Properties of a source

```sql
CREATE TABLE orders (id INT, item STRING, amount INT) TBLPROPERTIES ('change_tracking' = 'true', 'data_retention_days' = '14');
ALTER TABLE orders SET PROPERTIES ('data_retention_days' = '30');
```

| property | Delta's properties | meaning |
|---|---|---|
| `'change_tracking' = 'true'` | `delta.enableRowTracking`, `delta.enableInCommitTimestamps`, `delta.enableDeletionVectors` | \
A table needs it before it can have a stream. The history that streams can read starts there. Deletion vectors that a user switched off \
stay off. `'false'` switches row tracking off, and ends the streams on the table. |
| `'data_retention_days' = 'n'` | `delta.deletedFileRetentionDuration`, `delta.logRetentionDuration` | Within this time, a statement must \
consume each stream. Both properties are set, so less than 30 days shortens the log. By default, Delta keeps removed files for 7 days and \
the log for 30. |

Two properties are for [TableStore streams](tablestore.md#set-up-a-table). `ALTER TABLE … SET TBLPROPERTIES` sets them:

| property | default | meaning |
|---|---|---|
| `'tablestore.primary_key' = 'column, …'` | none | the columns of the primary key, of which records are made |
| `'tablestore.shard_count' = 'n'` | `1` | the number of shards, from 1 to 1024 |

## Properties of a stream

```sql
CREATE TABLE STREAM new_orders ON TABLE orders
WITH (TABLE_STREAM_MODE = APPEND_ONLY, SHOW_INITIAL_ROWS = TRUE, COMMENT = 'orders, as they come in');
```

| property | default | meaning |
|---|---|---|
| `TABLE_STREAM_MODE` | `STANDARD` | `STANDARD`: net changes of every type. `APPEND_ONLY`: inserted rows only, with their values at the \
insert. On an external table, the default is `APPEND_ONLY` and the only mode. `APPEND_ONLY = TRUE` and `INSERT_ONLY = TRUE` are clauses \
for the same, outside of WITH. |
| `SHOW_INITIAL_ROWS` | `FALSE` | `TRUE`: until its first consumption, the stream also shows the rows that the source has, as INSERTs. |
| `COMMENT` | none | A text that SHOW STREAMS shows. |

## Environment variables

| variable | meaning |
|---|---|
| `STREAMQL_DATA` | The default of `--data` (`streamql-data`). |
| `STREAMQL_DATABASE` | The default of `--database`. |
| `STREAMQL_CONNECT` | The default of `--connect`, for SQL. A token in it is not shown by lists of processes. |
| `STREAMQL_RUN` | A name for a run, which the ledger keeps with its consumptions: [orchestrators](orchestrators.md#other-orchestrators). |
| `STREAMQL_CACHE` | The directory of jars and class data (`$XDG_CACHE_HOME/streamql`, else `~/.cache/streamql`). |
| `STREAMQL_IVY_SETTINGS` | An Ivy settings file, to fetch jars through a proxy or from your own mirror. |
| `STREAMQL_HISTORY` | The file of the shell's history (`history` in the cache). |
| `STREAMQL_PLATFORMS` | The platforms whose jars a build of a wheel makes, with commas between, such as `spark4.2-delta4.4` (all). |
| `STREAMQL_LOG_LEVEL` | The level of the embedded session's log4j (`error`). |
| `SPARK_HOME` | Another Spark than PySpark's own. It must have the same version as the PySpark of this Python. |
| `SPARK_CONF_DIR` | The directory of Spark's configuration (`$SPARK_HOME/conf`). |
| `PYSPARK_DRIVER_PYTHON`, `PYSPARK_PYTHON` | The Python of the sidecar, if `spark.streamql.python` is not set. |
| `JAVA_HOME` | The Java runtime: {java} |
| `PAGER` | The program that the shell shows long results with (`less`). |
"""


def reference() -> str:
    """The page."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for s in settings.ALL:
        default = "none" if s.default is None else f"`{s.default}`"
        lines.append(f"| `{s.key}` | {default} | {s.meaning} |")
    return TEXT.format(java=JAVA_NEEDED, settings="\n".join(lines), extensions=",".join(EXTENSIONS))


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    api.PAGE.write_text(api.api(), encoding="utf-8")
    metrics.PAGE.write_text(metrics.with_table(metrics.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    platforms.PAGE.write_text(platforms.with_table(platforms.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
