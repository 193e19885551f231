"""Runs what a session can ask of streamql once, in a catalog of its own, and returns what it saw as plain values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql import StreamqlError
from streamql.delta.jvm import sentence
from streamql.engine.doctor import examine
from streamql.engine.ledger import flows, history, newest
from streamql.settings import CATALOG, CATALOG_LOCATION
from tests.consume.support import TRACKED, run
from tests.lines import COPIES_VARIANTS, UPDATES_CHAR

Seen = dict[str, object]
"""What each step saw, by the step's name: rows and types as text, or the first line of an error."""

_FLAG = "CHAR(3)" if UPDATES_CHAR else "STRING"
_DOC = "VARIANT" if COPIES_VARIANTS else "STRING"
SOURCE_COLUMNS = (
    f"id BIGINT, name STRING, code VARCHAR(5), flag {_FLAG}, at TIMESTAMP_LTZ, local TIMESTAMP_NTZ, day DATE, price DECIMAL(38, 18), "
    f"word STRING, tags MAP<STRING, INT>, pair STRUCT<a: INT, b: STRING>, list ARRAY<STRING>, `we ird` STRING, doc {_DOC}"
)
MERGE = (
    "MERGE INTO merged AS m USING by_merge AS s ON m.id = s.id "
    "WHEN MATCHED AND s.METADATA$ACTION = 'DELETE' AND NOT s.METADATA$ISUPDATE THEN DELETE "
    "WHEN MATCHED AND s.METADATA$ACTION = 'INSERT' THEN UPDATE SET m.name = s.name "
    "WHEN NOT MATCHED AND s.METADATA$ACTION = 'INSERT' THEN INSERT (id, name) VALUES (s.id, s.name)"
)


def make_source(spark: SparkSession, table: str) -> None:
    """Makes a table of many types, with rows inserted, updated, moved and deleted, and a column that came late, in a plain session."""
    tracked = TRACKED.replace(")", ", 'delta.columnMapping.mode' = 'name')")
    run(spark, f"CREATE TABLE {table} ({SOURCE_COLUMNS}) {tracked}")

    run(
        spark,
        f"INSERT INTO {table} SELECT id, 'n' || id, 'c' || id, 'f', timestamp_micros(id * 1000001), "
        "to_timestamp_ntz('2026-03-29 02:30:00'), DATE '1500-01-02', 1.25, 'Word', map('k', 1, 'j', 2), "
        f"named_struct('a', 1, 'b', 'x'), array('p', 'q'), 'odd', CAST(parse_json('{{\"a\": 1}}') AS {_DOC}) FROM range(0, 7, 1, 2)",
    )
    run(spark, f"UPDATE {table} SET name = 'changed', tags = map('k', 3) WHERE id IN (1, 6)")
    run(spark, f"DELETE FROM {table} WHERE id IN (3, 5)")
    run(spark, f"OPTIMIZE {table}")
    run(spark, f"ALTER TABLE {table} ADD COLUMN (late STRING)")
    run(
        spark,
        f"MERGE INTO {table} AS t USING (SELECT explode(array(1, 4, 20, 21)) AS id) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET late = 'l', name = 'again' WHEN NOT MATCHED THEN INSERT (id, late) VALUES (s.id, 'late')",
    )


def make_targets(spark: SparkSession, schema: str) -> None:
    """The schema in which `play` works, with its targets, made in a plain session."""
    run(spark, f"CREATE SCHEMA {schema}")
    run(
        spark,
        f"CREATE TABLE {schema}.target (change_type STRING, version BIGINT, committed TIMESTAMP_LTZ, id BIGINT, name STRING) USING delta",
    )
    run(spark, f"CREATE TABLE {schema}.merged (id BIGINT, name STRING) USING delta")
    run(spark, f"INSERT INTO {schema}.merged VALUES (1, 'old'), (3, 'old')")
    run(spark, f"CREATE TABLE {schema}.small (id BIGINT, v STRING) USING delta")


def use_catalog(spark: SparkSession, schema: str, location: Path) -> None:
    """A session's streams are those of a catalog of its own, which is made when the first is."""
    spark.conf.set(CATALOG.key, f"{schema}_catalog")
    spark.conf.set(CATALOG_LOCATION.key, str(location))


def play(spark: SparkSession, table: str, schema: str, since: str) -> Seen:
    """The steps, in a session over the source `table` and the targets in `schema`. `since`: a time, with its zone, between two of the
    source's commits."""
    seen: Seen = {}

    def step(name: str, work: Callable[[], object]) -> None:
        try:
            seen[name] = work()
        except (StreamqlError, PySparkException) as e:
            seen[name] = f"{type(e).__name__}: {sentence(e)}".replace(schema, "SCHEMA")

    _define_and_read(spark, step, table, schema, since)
    _consume(spark, step, schema, since)
    for view in VIEWS:
        step(view, lambda view=view: look(spark, schema, view))
    return seen


Step = Callable[[str, Callable[[], object]], None]


def _define_and_read(spark: SparkSession, step: Step, table: str, schema: str, since: str) -> None:
    def sql(name: str, text: str) -> None:
        step(name, lambda: shown(spark.sql(text), schema))

    sql("use", f"USE spark_catalog.{schema}")
    for name, rest in (
        ("s", "AT (VERSION => 1) COMMENT = 'it is'"),
        ("by_merge", f"AT (TIMESTAMP => '{since}')"),
        ("by_insert", f"BEFORE (TIMESTAMP => TIMESTAMP '{since}')"),
        ("appended", "AT (VERSION => 1) APPEND_ONLY = TRUE"),
        ("initial", "SHOW_INITIAL_ROWS = TRUE"),
        ("current", "AT (OFFSET => -0.5 * 0)"),
    ):
        sql(f"create {name}", f"CREATE STREAM {name} ON TABLE {table} {rest}")
    sql("properties", "ALTER TABLE small SET PROPERTIES ('change_tracking' = 'true', 'kept' = 'it''s')")
    properties = (F.element_at("properties", key) for key in ("delta.enableRowTracking", "kept"))
    step("tracked", lambda: shown(spark.sql("DESCRIBE DETAIL small").select(*properties), schema))
    sql("show", "SHOW STREAMS WHERE create_time > TIMESTAMP '2000-01-01 00:00:00'")
    facts = F.col("info_name").isin(
        "name", "mode", "offset_version", "lag_versions", "has_data", "comment", "definition", "events"
    )
    step("describe", lambda: shown(spark.sql("DESCRIBE STREAM s").where(facts), schema))
    sql("columns", "DESCRIBE TABLE s")
    for stream in ("s", "appended", "initial"):
        sql(f"read {stream}", f"SELECT * FROM {stream}")
    sql(
        "hidden",
        "SELECT id, METADATA$ACTION, METADATA$ROW_ID, name FROM by_merge WHERE __change_type <> 'UPDATE_BEFORE'",
    )
    for name, points in (
        ("minimized", "AT (VERSION => 1) END (VERSION => 3)"),
        ("since", f"AT (TIMESTAMP => TIMESTAMP '{since}' + INTERVAL 0 SECONDS)"),
        ("nothing", "AT (STREAM => current)"),
    ):
        sql(f"changes {name}", f"SELECT * FROM {table} CHANGES (INFORMATION => DEFAULT) {points}")
    sql(
        "functions",
        "SELECT stream_has_data('s') AS a, SYSTEM$STREAM_HAS_DATA('current') AS b, stream_table_timestamp('s') AS at",
    )
    sql("backlog", "SELECT * FROM stream_backlog('s')")


def _consume(spark: SparkSession, step: Step, schema: str, since: str) -> None:
    def sql(name: str, text: str) -> None:
        step(name, lambda: shown(spark.sql(text), schema))

    sql(
        "insert",
        "INSERT INTO target SELECT __change_type, __commit_version, __commit_timestamp, id, name FROM by_insert",
    )
    sql("target", "SELECT change_type, version, id, name, committed FROM target")
    sql("merge", MERGE)
    sql("merged", "SELECT * FROM merged")
    sql("ctas", "CREATE TABLE copied USING delta AS SELECT id, name, __commit_timestamp AS at FROM appended")
    sql("copied", "SELECT * FROM copied")
    sql("consume", "SELECT id, late FROM initial WITH (CONSUME = TRUE)")
    sql("set offset", f"ALTER STREAM s SET OFFSET TIMESTAMP '{since}'")
    sql("show after", "SHOW STREAMS")
    step("doctor", lambda: sorted(str(f).replace(schema, "SCHEMA") for f in examine(spark, fix=True)))
    step(
        "newest",
        lambda: sorted(
            ([x.replace(schema, "") for x in n.consumption.targets], n.consumption.rows_written)
            for n in newest(spark).values()
        ),
    )
    step(
        "history",
        lambda: sorted(str([(b.changes, b.consumed) for b in h]) for h in history(spark, 0, 1 << 42, 3).values()),
    )
    step("flows", lambda: sorted(str([(f.consumptions, f.rows_written) for f in h]) for h in flows(spark).values()))


VIEWS = ("streams", "consumptions")


def look(spark: SparkSession, schema: str, view: str) -> object:
    """What a view of the catalog that `play` filled shows, in any session."""
    return shown(spark.table(f"spark_catalog.{schema}_catalog.{view}"), schema)


DRAWN = {
    "stream_id",
    "consumption_id",
    "source_path",
    "target_path",
    "metrics",
    "pid",
    "host",
    "user_name",
    "lag_seconds",
    "definition",
}
"""Columns whose values differ each time."""


def shown(frame: DataFrame, schema: str) -> object:
    """(types, rows in order) as text; times as milliseconds, or where they are of now, as whether there is one."""
    fields = [(f.name, f.dataType.simpleString()) for f in frame.schema.fields]
    columns = []
    for i, (name, change_type) in enumerate(fields):
        c = F.col(f"c{i}")
        if name in DRAWN or (
            change_type == "timestamp"
            and not name.startswith("__")
            and name not in ("at", "offset_timestamp", "committed")
        ):
            c = F.when(c.isNull(), F.lit("NULL")).otherwise(F.lit("*"))
        elif change_type == "timestamp":
            c = F.unix_millis(c).cast("string")
        elif change_type == "variant":
            c = F.to_json(c)
        else:
            c = F.to_json(F.struct(c))
        columns.append(c.alias(f"c{i}"))
    rows = frame.toDF(*(f"c{i}" for i in range(len(fields)))).select(*columns).collect()
    return [str(fields), *sorted(str(tuple(r)).replace(schema, "SCHEMA") for r in rows)]
