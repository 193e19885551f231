"""What each construct of a script becomes, as text."""

from __future__ import annotations

from streamql.features.translate.model import System

SNOWFLAKE, DATABEND, CLICKZETTA = System

KEPT = [
    (SNOWFLAKE, "CREATE OR REPLACE STREAM s ON DYNAMIC TABLE d APPEND_ONLY = TRUE COMMENT = 'x'"),
    (SNOWFLAKE, "SHOW STREAMS LIKE 's%'"),
    (SNOWFLAKE, "ALTER STREAM s SET COMMENT = 'x'"),
    (SNOWFLAKE, "BEGIN TRANSACTION"),
    (SNOWFLAKE, "SELECT id, METADATA$ACTION FROM s WHERE METADATA$ISUPDATE = FALSE"),
    (
        SNOWFLAKE,
        "SELECT id\n  FROM t CHANGES (INFORMATION => APPEND_ONLY) AT (OFFSET => -60) x  -- the last minute\n  WHERE x.id > 1",
    ),
    (SNOWFLAKE, "INSERT INTO t SELECT id FROM s WHERE METADATA$ACTION = 'INSERT'"),
    (SNOWFLAKE, "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.METADATA$ACTION = 'DELETE' THEN DELETE"),
    (SNOWFLAKE, "ALTER TABLE t SET CHANGE_TRACKING = TRUE"),
    (SNOWFLAKE, "ALTER DYNAMIC TABLE d SUSPEND"),
    (DATABEND, "SELECT id, change$action FROM s WITH (CONSUME = TRUE, MAX_BATCH_SIZE = 10)"),
    (DATABEND, "SELECT has_data FROM stream_status('s')"),
    (CLICKZETTA, "DROP TABLE STREAM IF EXISTS s"),
    (CLICKZETTA, "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')"),
    (CLICKZETTA, "SELECT * FROM t TIMESTAMP AS OF '2023-06-01'"),
    (CLICKZETTA, "SELECT `a b` FROM t"),
    (CLICKZETTA, "DESC HISTORY t"),
]
"""Statements that run as they are."""

STAR = "* EXCEPT (__change_type, __commit_version, __commit_timestamp)"
TRACKED = "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true');"
MADE = "CREATE STREAM s ON TABLE t APPEND_ONLY = FALSE;"

CHANGED = [
    # streams
    (SNOWFLAKE, "CREATE STREAM s ON TABLE t;", f"{TRACKED}\nCREATE STREAM s ON TABLE t;\n"),
    (DATABEND, "CREATE STREAM s ON TABLE t;", f"{TRACKED}\nCREATE STREAM s ON TABLE t APPEND_ONLY = TRUE;\n"),
    (
        CLICKZETTA,
        "CREATE TABLE STREAM s ON TABLE t WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');",
        f"{TRACKED}\nCREATE TABLE STREAM s ON TABLE t WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');\n",
    ),
    (
        SNOWFLAKE,
        "CREATE STREAM s ON TABLE t AT (TIMESTAMP => DATEADD('day', -1, '2023-01-02'::TIMESTAMP));",
        (
            "-- note: Snowflake reads a time without a zone in AT and BEFORE as UTC; here it is in the session's time zone\n"
            f"{TRACKED}\nCREATE STREAM s ON TABLE t AT (TIMESTAMP => DATEADD(DAY, -1, CAST('2023-01-02' AS TIMESTAMP)));\n"
        ),
    ),
    (
        SNOWFLAKE,
        f"{MADE} CREATE STREAM r CLONE s;",
        (
            f"{TRACKED}\n{MADE}\n"
            "-- note: CLONE became AT (STREAM => …): the new stream begins where the other one stands\n"
            "CREATE STREAM r ON TABLE t AT (STREAM => 's') APPEND_ONLY = FALSE;\n"
        ),
    ),
    (
        SNOWFLAKE,
        'CREATE STREAM "My s" COPY GRANTS ON TABLE "t";',
        (
            "-- note: COPY GRANTS was left out: permissions are those of the catalog and the storage\n"
            "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true');\nCREATE STREAM `My s` ON TABLE `t`;\n"
        ),
    ),
    (
        SNOWFLAKE,
        "SHOW STREAMS LIKE 'a%' IN ACCOUNT;",
        (
            "-- note: SHOW STREAMS IN ACCOUNT became a query of streamql.streams, whose columns have other names\n"
            "SELECT * FROM streamql.streams WHERE name ILIKE '%.a%';\n"
        ),
    ),
    (
        SNOWFLAKE,
        "SELECT * FROM TABLE(SYSTEM$STREAM_BACKLOG('s'));",
        (
            "-- note: SYSTEM$STREAM_BACKLOG became stream_backlog, which has columns of its own\n"
            "SELECT * FROM stream_backlog('s');\n"
        ),
    ),
    # all columns of a stream
    (
        SNOWFLAKE,
        f"{MADE} SELECT * FROM s;",
        f"{TRACKED}\n{MADE} SELECT {STAR}, METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID FROM s;\n",
    ),
    (
        SNOWFLAKE,
        f"{MADE} SELECT x.* FROM s AS x JOIN y USING (id);",
        (
            f"{TRACKED}\n{MADE} SELECT x.* FROM (SELECT {STAR}, METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID FROM s) AS x"
            " JOIN y USING (id);\n"
        ),
    ),
    (
        DATABEND,
        f"{MADE} SELECT * FROM s;",
        f"{TRACKED}\n{MADE} SELECT {STAR}, change$action, change$row_id, change$is_update FROM s;\n",
    ),
    (
        DATABEND,
        f"{MADE} INSERT INTO r SELECT * FROM s;",
        (
            f"{TRACKED}\n{MADE}\n"
            "-- note: * of the stream became the columns of its source, without the columns of the change\n"
            f"INSERT INTO r SELECT {STAR} FROM s;\n"
        ),
    ),
    (
        SNOWFLAKE,
        f"{MADE} SELECT * EXCLUDE (METADATA$ROW_ID) FROM s;",
        (
            f"{TRACKED}\n{MADE} SELECT * EXCEPT (METADATA$ROW_ID)"
            f" FROM (SELECT {STAR}, METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID FROM s) AS s;\n"
        ),
    ),
    # change tracking
    (
        SNOWFLAKE,
        "CREATE TABLE t (id INT); CREATE VIEW v AS SELECT id FROM t; CREATE STREAM s ON VIEW v;",
        f"CREATE TABLE t (id INT) USING DELTA;\n{TRACKED} CREATE VIEW v AS SELECT id FROM t; CREATE STREAM s ON VIEW v;\n",
    ),
    (
        SNOWFLAKE,
        "CREATE TABLE t (id INT); ALTER TABLE t SET CHANGE_TRACKING = TRUE; CREATE STREAM s ON TABLE t;",
        "CREATE TABLE t (id INT) USING DELTA; ALTER TABLE t SET CHANGE_TRACKING = TRUE; CREATE STREAM s ON TABLE t;\n",
    ),
    # dynamic tables
    (
        SNOWFLAKE,
        "CREATE DYNAMIC TABLE d TARGET_LAG = '1 hour' WAREHOUSE = w AS SELECT IFF(a > 1, 1, 0) AS b FROM t;",
        (
            "-- note: no service refreshes the table: run streamql scheduler, or streamql refresh --due from cron\n"
            "-- note: the script does not create t: leave ALTER TABLE t out if t is a dynamic table or a view\n"
            f"{TRACKED}\nCREATE DYNAMIC TABLE d TARGET_LAG = '1 hour' WAREHOUSE = w AS SELECT IF(a > 1, 1, 0) AS b FROM t;\n"
        ),
    ),
    (
        SNOWFLAKE,
        "CREATE DYNAMIC TABLE d (a NUMBER(8), b STRING) REQUIRE USER AS SELECT a, b FROM s;",
        (
            "-- note: the type NUMBER(8) of a column was left out: the query gives the columns their types\n"
            "-- note: the type STRING of a column was left out: the query gives the columns their types\n"
            "-- note: REQUIRE USER was left out: a refresh runs as the user who starts it\n"
            "-- note: the script does not create s: leave ALTER TABLE s out if s is a dynamic table or a view\n"
            "ALTER TABLE s SET PROPERTIES ('change_tracking' = 'true');\n"
            "CREATE DYNAMIC TABLE d (a, b) AS SELECT a, b FROM s;\n"
        ),
    ),
    (
        SNOWFLAKE,
        "ALTER DYNAMIC TABLE d SET TARGET_LAG = '5 minutes' WAREHOUSE = w;",
        (
            "-- note: WAREHOUSE was left out: no warehouse runs refreshes\n"
            "ALTER DYNAMIC TABLE d SET TARGET_LAG = '5 minutes';\n"
        ),
    ),
    (
        SNOWFLAKE,
        "START TRANSACTION NAME x; SELECT a FROM t AT (TIMESTAMP => 'Fri, 01 May 2015 16:20:00 -0700'::TIMESTAMP_LTZ);",
        (
            "-- note: NAME was left out: transactions have no names\n"
            "START TRANSACTION; SELECT a FROM t AT (TIMESTAMP => CAST('2015-05-01 16:20:00-07:00' AS TIMESTAMP_LTZ));\n"
        ),
    ),
    # tables
    (
        SNOWFLAKE,
        "CREATE TABLE t (id NUMBER NOT NULL, v VARIANT, o OBJECT, a ARRAY, at TIMESTAMP_NTZ(9), s STRING NULL);",
        "CREATE TABLE t (id DECIMAL(38, 0) NOT NULL, v VARIANT, o VARIANT, a VARIANT, at TIMESTAMP_NTZ, s STRING) USING DELTA;\n",
    ),
    (
        SNOWFLAKE,
        "CREATE TRANSIENT TABLE t (id INT AUTOINCREMENT PRIMARY KEY, s VARCHAR DEFAULT 'x') DATA_RETENTION_TIME_IN_DAYS = 3;",
        (
            "-- note: id became BIGINT: an identity column of Delta Lake is one\n"
            "-- note: PRIMARY KEY of id was left out: Delta Lake has no primary, unique or foreign keys\n"
            "-- note: TRANSIENT was left out: Delta Lake keeps the history of every table\n"
            "CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 1), s STRING DEFAULT 'x')"
            " USING DELTA TBLPROPERTIES ('delta.feature.allowColumnDefaults'='supported');\n"
            "ALTER TABLE t SET PROPERTIES ('data_retention_days' = '3');\n"
        ),
    ),
    (
        DATABEND,
        "CREATE TABLE t (a UInt64, b INT UNSIGNED, c ARRAY(INT), d TUPLE(x INT)) CLUSTER BY (b);",
        "CREATE TABLE t (a DECIMAL(20, 0), b BIGINT, c ARRAY<INT>, d STRUCT<x: INT>) USING DELTA CLUSTER BY (b);\n",
    ),
    (
        CLICKZETTA,
        "CREATE TABLE t (id BIGINT IDENTITY(1), j JSON) PROPERTIES ('change_tracking' = 'true');",
        (
            "CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 1), j VARIANT) USING DELTA;\n"
            f"{TRACKED}\n"
        ),
    ),
    (
        CLICKZETTA,
        "CREATE TABLE t (id BIGINT PRIMARY KEY DISABLE NOVALIDATE RELY);",
        "CREATE TABLE t (id BIGINT, PRIMARY KEY (id) RELY) USING DELTA;\n",
    ),
    # queries and DML
    (DATABEND, "SELECT a // 3 AS third, today() FROM t;", "SELECT a DIV 3 AS third, CURRENT_DATE FROM t;\n"),
    (SNOWFLAKE, "SELECT v['a b'] FROM t;", "SELECT VARIANT_GET(v, '$[\"a b\"]') FROM t;\n"),
    (SNOWFLAKE, "SELECT a FROM t AS x AT (OFFSET => -60);", "SELECT a FROM t AT (OFFSET => -60) AS x;\n"),
    (SNOWFLAKE, "SELECT v:a.b::STRING FROM t;", "SELECT CAST(v:a.b AS STRING) FROM t;\n"),
    (
        SNOWFLAKE,
        "SELECT f.value FROM t, LATERAL FLATTEN(INPUT => t.v:items) f;",
        "SELECT f.value FROM t, LATERAL VARIANT_EXPLODE(t.v:items) AS f(index, key, value);\n",
    ),
    (
        SNOWFLAKE,
        "UPDATE t SET a = s.a FROM s WHERE s.id = t.id;",
        (
            "-- note: UPDATE … FROM became MERGE, which fails if several rows of the source match one row of the target\n"
            "MERGE INTO t USING s ON s.id = t.id WHEN MATCHED THEN UPDATE SET a = s.a;\n"
        ),
    ),
    (
        SNOWFLAKE,
        "INSERT FIRST WHEN a > 1 THEN INTO x ELSE INTO y (a) VALUES (a) SELECT a FROM s;",
        (
            "FROM (SELECT a FROM s)\nINSERT INTO x SELECT * WHERE (a > 1)\n"
            "INSERT INTO y (a) SELECT a WHERE NOT coalesce((a > 1), false);\n"
        ),
    ),
    (
        DATABEND,
        "REPLACE INTO t (id, v) ON (id) VALUES (1, 'a');",
        (
            "-- note: REPLACE INTO became MERGE, which fails if two new rows have the same key, "
            "and leaves the columns of a replaced row that are not listed as they are\n"
            "WITH _source (id, v) AS (VALUES (1, 'a')) MERGE INTO t AS _target USING _source ON _target.id = _source.id "
            "WHEN MATCHED THEN UPDATE SET v = _source.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (_source.id, _source.v);\n"
        ),
    ),
    (
        SNOWFLAKE,
        "SET ts = (SELECT CURRENT_TIMESTAMP()); SELECT id FROM t AT (TIMESTAMP => $ts);",
        "DECLARE OR REPLACE VARIABLE ts = CURRENT_TIMESTAMP(); SELECT id FROM t AT (TIMESTAMP => session.ts);\n",
    ),
    (SNOWFLAKE, "USE SCHEMA sales;", "USE sales;\n"),
    (
        SNOWFLAKE,
        "CREATE SCHEMA IF NOT EXISTS db.sales; USE SCHEMA db.sales; DESCRIBE SCHEMA db.sales; DROP SCHEMA db.sales;",
        (
            "-- note: db is a database of the source system: Spark's schemas are in a catalog, so only the schema was kept\n"
            "CREATE SCHEMA IF NOT EXISTS sales; USE sales; DESCRIBE SCHEMA sales;\n"
            "-- note: CASCADE was added: in Snowflake DROP SCHEMA also drops the tables inside\n"
            "DROP SCHEMA sales CASCADE;\n"
        ),
    ),
    (
        CLICKZETTA,
        "CREATE SCHEMA w.sales; USE w.sales; DROP SCHEMA IF EXISTS w.sales;",
        (
            "-- note: w is a database of the source system: Spark's schemas are in a catalog, so only the schema was kept\n"
            "CREATE SCHEMA sales; USE sales; DROP SCHEMA IF EXISTS sales;\n"
        ),
    ),
    (SNOWFLAKE, "SHOW TABLES LIKE 'a%' IN SCHEMA s;", "SHOW TABLES IN s LIKE 'a*';\n"),
    (
        SNOWFLAKE,
        "ALTER TABLE t SET DATA_RETENTION_TIME_IN_DAYS = 30;",
        "ALTER TABLE t SET PROPERTIES ('data_retention_days' = '30');\n",
    ),
    (
        SNOWFLAKE,
        "SELECT zorro(1);",
        "-- note: Spark has no function zorro: define one, or use another\nSELECT zorro(1);\n",
    ),
    (
        SNOWFLAKE,
        f"{MADE} BEGIN; INSERT INTO log VALUES (1); INSERT INTO log SELECT a FROM s; COMMIT; INSERT INTO log VALUES (2);",
        (
            f"{TRACKED}\n{MADE} BEGIN;\n"
            "-- note: in a transaction each statement that writes must read a stream here: move this one before BEGIN or behind COMMIT\n"
            "INSERT INTO log VALUES (1); INSERT INTO log SELECT a FROM s; COMMIT; INSERT INTO log VALUES (2);\n"
        ),
    ),
]

REFUSED = [
    (SNOWFLAKE, "CREATE STREAM s ON TABLE t BEFORE (STATEMENT => 'x')", "statement ids"),
    (SNOWFLAKE, "CREATE STREAM s ON EXTERNAL TABLE t", "Kafka topics"),
    (SNOWFLAKE, "CREATE STREAM s ON STAGE g", "ON STAGE"),
    (SNOWFLAKE, "SELECT * FROM t AT (STATEMENT => 'x')", "statement ids"),
    (SNOWFLAKE, "ALTER TASK k SET NOTHING = 1", "no parameter NOTHING"),
    (SNOWFLAKE, "SHOW CREATE TABLE t", "SHOW CREATE TABLE"),
    (SNOWFLAKE, "GRANT SELECT ON TABLE t TO ROLE r", "permissions"),
    (SNOWFLAKE, "COPY INTO t FROM @g", "stages"),
    (SNOWFLAKE, "SELECT * FROM @g/x.csv", "stage"),
    (SNOWFLAKE, "SELECT $1 FROM t", "$1"),
    (SNOWFLAKE, "BEGIN LET x := 1; RETURN x; END", "scripting"),
    (SNOWFLAKE, "CREATE TABLE t (g GEOGRAPHY)", "GEOGRAPHY"),
    (SNOWFLAKE, "FLY TO t", "sqlglot cannot parse"),
    (SNOWFLAKE, "VACUUM FULL t", "does not know"),
    (SNOWFLAKE, "SELECT FROM WHERE", "sqlglot cannot parse"),
    (SNOWFLAKE, "SELECT 'a", "no end"),
    (SNOWFLAKE, "SELECT 'a' /* b", "no end"),
    (SNOWFLAKE, "SET x = (SELECT max(id) FROM t)", "SET of a query"),
    (SNOWFLAKE, "SET x = FROM t", "SET of several values"),
    (SNOWFLAKE, "DELETE t u USING s WHERE s.id = t.id", "several tables"),
    (SNOWFLAKE, "UPDATE t SET a = 1 FROM r, s WHERE t.id = s.id", "several sources"),
    (DATABEND, "CREATE STREAM s ON TABLE t AT (SNAPSHOT => 'x')", "snapshots"),
    (DATABEND, "REPLACE INTO t ON (id) SELECT * FROM r", "list of columns"),
    (CLICKZETTA, "USE VCLUSTER v", "warehouses"),
    (CLICKZETTA, "SELECT SESSION_CONFIGS()['dt']", "parameters"),
]
