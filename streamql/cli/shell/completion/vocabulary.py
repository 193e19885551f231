"""The words that completion offers and highlighting knows: Spark's, and ours. Data."""

from __future__ import annotations

# fmt: off
STATEMENTS = (
    "SELECT", "INSERT INTO", "INSERT OVERWRITE", "MERGE INTO", "UPDATE", "DELETE FROM", "WITH", "VALUES", "FROM",
    "CREATE TABLE", "CREATE TABLE STREAM", "CREATE STREAM", "CREATE OR REPLACE TABLE", "CREATE OR REPLACE STREAM",
    "CREATE VIEW",
    "CREATE OR REPLACE VIEW", "CREATE OR REPLACE TEMPORARY VIEW", "CREATE DATABASE", "CREATE SCHEMA", "CREATE FUNCTION",
    "DROP TABLE", "DROP STREAM", "DROP VIEW", "DROP DATABASE", "DROP SCHEMA", "ALTER TABLE", "ALTER STREAM", "ALTER VIEW",
    "SHOW STREAMS", "SHOW TABLES", "SHOW DATABASES", "SHOW VIEWS", "SHOW COLUMNS IN", "SHOW CREATE TABLE", "SHOW CREATE STREAM",
    "SHOW TBLPROPERTIES", "SHOW FUNCTIONS", "SHOW PARTITIONS", "DESCRIBE", "DESCRIBE STREAM", "DESCRIBE TABLE EXTENDED",
    "DESCRIBE HISTORY", "DESCRIBE DETAIL", "EXPLAIN", "EXPLAIN FORMATTED", "USE", "SET", "RESET",
    "BEGIN TRANSACTION", "COMMIT", "ROLLBACK", "ROLLBACK STATEMENT", "OPTIMIZE", "VACUUM", "RESTORE TABLE", "REFRESH TABLE",
    "TRUNCATE TABLE",
    "ANALYZE TABLE",
    "CACHE TABLE", "UNCACHE TABLE", "DECLARE", "EXECUTE IMMEDIATE",
    "CREATE STORAGE CONNECTION", "CREATE OR REPLACE STORAGE CONNECTION", "DROP STORAGE CONNECTION", "SHOW CONNECTIONS",
    "DESCRIBE STORAGE CONNECTION", "CREATE EXTERNAL TABLE", "CREATE OR REPLACE EXTERNAL TABLE", "DROP EXTERNAL TABLE",
    "SHOW EXTERNAL TABLES", "SHOW CREATE EXTERNAL TABLE", "DESCRIBE EXTERNAL TABLE",
    *(
        f"{verb} {what}"
        for what in ("DYNAMIC TABLE", "MATERIALIZED VIEW")
        for verb in (
            "CREATE", "CREATE OR REPLACE", "DROP", "ALTER", "REFRESH", "VERIFY", "EXPLAIN REFRESH", "DESCRIBE", "SHOW CREATE",
        )
    ),
    "SHOW DYNAMIC TABLES", "SHOW MATERIALIZED VIEWS", "SHOW DYNAMIC TABLE REFRESH HISTORY",
    "SHOW MATERIALIZED VIEW REFRESH HISTORY",
)
"""What a statement may begin with."""

KEYWORDS = frozenset((
    "ADD", "AFTER", "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "ANY", "ARRAY", "AS", "ASC", "AT", "BEFORE", "BEGIN",
    "BETWEEN", "BY", "CACHE",
    "CALL", "CASCADE", "CASE", "CAST", "CHANGE", "CHANGES", "CHANGE_TRACKING", "CLONE", "CLUSTER", "COLUMN", "COLUMNS",
    "COMMENT", "COMMIT",
    "CONSTRAINT", "CONSUME", "CREATE", "CROSS", "CUBE", "CURRENT", "DATABASE", "DATABASES", "DECLARE", "DEFAULT", "DELETE",
    "DESC",
    "DESCRIBE", "DETAIL", "DISTINCT", "DISTRIBUTE", "DO", "DROP", "DRY", "ELSE", "END", "ESCAPE", "EXCEPT", "EXECUTE", "EXISTS",
    "EXPLAIN", "EXTENDED", "FALSE", "FILTER", "FIRST", "FOR", "FORMATTED", "FROM", "FULL", "FUNCTION", "FUNCTIONS",
    "GENERATED", "GROUP",
    "GROUPING", "HAVING", "HISTORY", "IF", "ILIKE", "IMMEDIATE", "IN", "INFORMATION", "INNER", "INSERT", "INTERSECT",
    "INTERVAL", "INTO",
    "IS", "JOIN", "LAST", "LATERAL", "LATEST", "LEFT", "LIKE", "LIMIT", "LOCATION", "LOOP", "MAP", "MATCHED",
    "MAX_BATCH_SIZE", "MERGE",
    "MINUS", "NATURAL", "NO", "NOT", "NULL", "NULLS", "OF", "OFFSET", "ON", "OPTIMIZE", "OR", "ORDER", "OUTER", "OVER",
    "OVERWRITE",
    "PARTITION", "PARTITIONED", "PARTITIONS", "PIVOT", "PROPERTIES", "PURGE", "QUALIFY", "RANGE", "RECURSIVE", "REFRESH",
    "RELEASE",
    "RENAME", "REPEAT", "REPLACE", "RESET", "RESTORE", "RETAIN", "RIGHT", "RLIKE", "ROLLBACK", "ROLLUP", "ROW", "ROWS",
    "RUN", "SCHEMA",
    "SCHEMAS", "SELECT", "SEMI", "SET", "SETS", "SHALLOW", "SHOW", "SHOW_INITIAL_ROWS", "SORT", "SOURCE", "START",
    "STATEMENT", "STREAM", "STREAMS",
    "STRUCT", "TABLE", "TABLES", "TABLESAMPLE", "TABLE_STREAM_MODE", "TARGET", "TBLPROPERTIES", "TEMP", "TEMPORARY",
    "TERSE", "THEN", "TO",
    "TRANSACTION", "TRUE", "TRUNCATE", "UNCACHE", "UNION", "UNPIVOT", "UNSET", "UPDATE", "USE", "USING", "VACUUM",
    "VALUES", "VAR",
    "VARIABLE", "VERSION", "VIEW", "VIEWS", "WHEN", "WHERE", "WHILE", "WINDOW", "WITH", "ZONE", "ZORDER",
    "APPEND_ONLY", "STANDARD", "STORAGE", "CONNECTION", "CONNECTIONS", "EXTERNAL", "OPTIONS", "BOOTSTRAP_SERVERS",
    "SECURITY_PROTOCOL", "SASL_MECHANISM", "SASL_JAAS_CONFIG",
    "DYNAMIC", "MATERIALIZED", "TARGET_LAG", "DOWNSTREAM", "REFRESH_MODE", "INITIALIZE", "DEFERRED", "INCREMENTAL", "SUSPEND", "RESUME",
    "VERIFY",
))
"""Words that are shown as keywords, wherever they stand."""

CLAUSES = (
    "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN",
    "CROSS JOIN", "LEFT ANTI JOIN",
    "LEFT SEMI JOIN", "ON", "USING", "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE", "RLIKE",
    "EXISTS", "DISTINCT",
    "CASE", "WHEN", "THEN", "ELSE", "END", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "SELECT", "VALUES", "SET", "INTO",
    "OVER", "PARTITION BY",
    "DESC", "ASC", "NULLS FIRST", "NULLS LAST", "TRUE", "FALSE", "NULL", "INTERVAL", "CAST", "TABLE", "WITH", "QUALIFY",
    "CHANGES (INFORMATION => DEFAULT)", "AT (VERSION => ", "AT (TIMESTAMP => ", "BEFORE (VERSION => ", "END (VERSION => ",
    "AT (STREAM => ", "END (STREAM => ",
    "TIMESTAMP AS OF", "VERSION AS OF", "WITH (CONSUME = TRUE)", "MAX_BATCH_SIZE",
    "WHEN MATCHED THEN", "WHEN MATCHED AND", "WHEN NOT MATCHED THEN", "WHEN NOT MATCHED AND", "WHEN NOT MATCHED BY SOURCE THEN",
    "UPDATE SET", "DELETE", "INSERT", "MERGE", "MATCHED", "USING delta", "PARTITIONED BY", "CLUSTER BY", "TBLPROPERTIES",
    "COMMENT", "LOCATION",
)
"""What may follow somewhere inside a statement."""

FUNCTIONS = (
    "abs", "any_value", "approx_count_distinct", "array", "array_agg", "array_contains", "avg", "bool_and", "bool_or",
    "ceil", "coalesce",
    "collect_list", "collect_set", "concat", "concat_ws", "count", "count_if", "current_date", "current_database",
    "current_timestamp",
    "date_add", "date_format", "date_sub", "date_trunc", "datediff", "day", "dense_rank", "element_at", "explode",
    "extract", "first", "floor",
    "from_json", "get_json_object", "greatest", "hash", "hour", "if", "ifnull", "initcap", "isnull", "lag", "last", "lead",
    "least", "length",
    "lower", "make_date", "map", "max", "max_by", "md5", "median", "min", "min_by", "minute", "month", "named_struct",
    "now", "nullif", "nvl",
    "parse_json", "percentile", "percentile_approx", "range", "rank", "regexp_extract", "regexp_replace", "replace",
    "round", "row_number",
    "sequence", "sha2", "size", "split", "sqrt", "stddev", "struct", "substring", "sum", "timestamp_millis", "to_date",
    "to_json",
    "to_timestamp", "trim", "try_cast", "try_divide", "unix_timestamp", "upper", "uuid", "variance", "year",
)
STREAM_FUNCTIONS = (
    "stream_has_data", "stream_backlog", "stream_status", "SYSTEM$STREAM_HAS_DATA", "SYSTEM$STREAM_GET_TABLE_TIMESTAMP",
)
"""Functions whose argument is the name of a stream, in quotes."""

RECORDS_FUNCTION = "tablestore_records"
"""A function in FROM, whose first argument is the name of a stream or a table, in quotes."""

STREAM_COLUMNS = ("__change_type", "__commit_version", "__commit_timestamp")
STREAM_HIDDEN_COLUMNS = ("METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID")

AFTER: dict[tuple[str, ...], tuple[str, ...]] = {
    ("CREATE",): (
        "TABLE", "TABLE STREAM", "STREAM", "OR REPLACE", "VIEW", "TEMPORARY VIEW", "DATABASE", "SCHEMA", "FUNCTION",
        "EXTERNAL TABLE", "STORAGE CONNECTION", "DYNAMIC TABLE", "MATERIALIZED VIEW",
    ),
    ("OR", "REPLACE"): (
        "TABLE", "TABLE STREAM", "STREAM", "VIEW", "TEMPORARY VIEW", "FUNCTION", "EXTERNAL TABLE", "STORAGE CONNECTION",
        "DYNAMIC TABLE", "MATERIALIZED VIEW",
    ),
    **{
        (verb, word): (following,)
        for verb in ("CREATE", "REPLACE", "DROP", "ALTER", "REFRESH", "VERIFY", "DESC", "DESCRIBE")
        for word, following in (("DYNAMIC", "TABLE"), ("MATERIALIZED", "VIEW"))
    },
    ("SHOW", "DYNAMIC"): ("TABLES", "TABLE REFRESH HISTORY"),
    ("SHOW", "MATERIALIZED"): ("VIEWS", "VIEW REFRESH HISTORY"),
    ("DYNAMIC", "TABLES"): ("IN", "LIKE", "WHERE", "LIMIT"),
    ("MATERIALIZED", "VIEWS"): ("IN", "LIKE", "WHERE", "LIMIT"),
    ("REFRESH",): ("TABLE", "DYNAMIC TABLE", "MATERIALIZED VIEW", "FUNCTION"),
    ("VERIFY",): ("DYNAMIC TABLE", "MATERIALIZED VIEW"),
    ("EXPLAIN", "REFRESH"): ("DYNAMIC TABLE", "MATERIALIZED VIEW"),
    ("TARGET_LAG", "="): ("'1 minute'", "'10 minutes'", "'1 hour'", "DOWNSTREAM"),
    ("REFRESH_MODE", "="): ("AUTO", "FULL"),
    ("INITIALIZE", "="): ("ON_CREATE", "ON_SCHEDULE"),
    ("CREATE", "EXTERNAL"): ("TABLE",),
    ("REPLACE", "EXTERNAL"): ("TABLE",),
    ("CREATE", "EXTERNAL", "TABLE"): ("IF NOT EXISTS",),
    ("REPLACE", "EXTERNAL", "TABLE"): (),
    ("CREATE", "STORAGE"): ("CONNECTION",),
    ("REPLACE", "STORAGE"): ("CONNECTION",),
    ("CREATE", "STORAGE", "CONNECTION"): ("IF NOT EXISTS",),
    ("REPLACE", "STORAGE", "CONNECTION"): (),
    ("BOOTSTRAP_SERVERS", "="): ("['host:9092']",),
    ("SECURITY_PROTOCOL", "="): ("'PLAINTEXT'", "'SSL'", "'SASL_PLAINTEXT'", "'SASL_SSL'"),
    ("SASL_MECHANISM", "="): ("'PLAIN'", "'SCRAM-SHA-256'", "'SCRAM-SHA-512'", "'OAUTHBEARER'", "'GSSAPI'"),
    ("CREATE", "TABLE"): ("STREAM", "IF NOT EXISTS"),
    ("REPLACE", "TABLE"): ("STREAM",),
    ("CREATE", "STREAM"): ("IF NOT EXISTS",),
    ("TABLE", "STREAM"): ("IF NOT EXISTS",),
    ("DROP",): (
        "TABLE", "STREAM", "VIEW", "DATABASE", "SCHEMA", "FUNCTION", "EXTERNAL TABLE", "STORAGE CONNECTION", "DYNAMIC TABLE",
        "MATERIALIZED VIEW",
    ),
    ("DROP", "EXTERNAL"): ("TABLE",),
    ("DROP", "STORAGE"): ("CONNECTION",),
    ("DROP", "STORAGE", "CONNECTION"): ("IF EXISTS",),
    ("DESC", "EXTERNAL"): ("TABLE",),
    ("DESCRIBE", "EXTERNAL"): ("TABLE",),
    ("DESC", "STORAGE"): ("CONNECTION",),
    ("DESCRIBE", "STORAGE"): ("CONNECTION",),
    ("ALTER",): ("TABLE", "STREAM", "VIEW", "DATABASE", "DYNAMIC TABLE", "MATERIALIZED VIEW"),
    ("SHOW",): (
        "STREAMS", "TABLES", "DATABASES", "VIEWS", "SCHEMAS", "COLUMNS IN", "CREATE TABLE", "CREATE STREAM",
    "TBLPROPERTIES", "FUNCTIONS",
        "PARTITIONS", "TABLE EXTENDED LIKE", "CONNECTIONS", "EXTERNAL TABLES", "CREATE EXTERNAL TABLE",
        "DYNAMIC TABLES", "MATERIALIZED VIEWS", "DYNAMIC TABLE REFRESH HISTORY", "MATERIALIZED VIEW REFRESH HISTORY",
    ),
    ("SHOW", "CREATE"): ("TABLE", "STREAM", "EXTERNAL TABLE", "DYNAMIC TABLE", "MATERIALIZED VIEW"),
    ("SHOW", "CREATE", "EXTERNAL"): ("TABLE",),
    ("SHOW", "STORAGE"): ("CONNECTIONS",),
    ("SHOW", "CONNECTIONS"): ("LIKE",),
    ("STORAGE", "CONNECTIONS"): ("LIKE",),
    ("SHOW", "EXTERNAL"): ("TABLES",),
    ("EXTERNAL", "TABLES"): ("IN", "LIKE"),
    ("SHOW", "STREAMS"): ("IN", "LIKE", "WHERE", "LIMIT"),
    ("SHOW", "TABLES"): ("IN", "LIKE"),
    ("BEGIN",): ("TRANSACTION",),
    ("START",): ("TRANSACTION",),
    ("TABLE_STREAM_MODE", "="): ("STANDARD", "APPEND_ONLY"),
    ("SHOW_INITIAL_ROWS", "="): ("TRUE", "FALSE"),
    ("APPEND_ONLY", "="): ("TRUE", "FALSE"),
    ("CONSUME", "="): ("TRUE",),
    ("INFORMATION", "=>"): ("DEFAULT", "APPEND_ONLY"),
    ("CHANGES", "("): ("INFORMATION => DEFAULT", "INFORMATION => APPEND_ONLY"),
    ("SET", "OFFSET"): ("TO LATEST", "VERSION", "TIMESTAMP", "'{\"0\": 0}'"),
    ("SET", "PROPERTIES"): ("('change_tracking' = 'true')", "('data_retention_days' = '30')"),
    ("SET", "PROPERTIES", "("): ("'change_tracking' = 'true'", "'data_retention_days' = '30'"),
    ("AT", "("): ("VERSION => ", "TIMESTAMP => ", "OFFSET => ", "STREAM => "),
    ("END", "("): ("STREAM => ", "VERSION => ", "TIMESTAMP => ", "OFFSET => "),
    ("BEFORE", "("): ("VERSION => ", "TIMESTAMP => ", "OFFSET => ", "STREAM => "),
    ("GROUP",): ("BY",),
    ("ORDER",): ("BY",),
    ("INSERT",): ("INTO", "OVERWRITE"),
    ("MERGE",): ("INTO",),
    ("DELETE",): ("FROM",),
}
"""The words that follow others: nothing else is offered there but what the place itself asks for."""

STREAM_OPTIONS = (
    "TABLE_STREAM_MODE = STANDARD", "TABLE_STREAM_MODE = APPEND_ONLY", "SHOW_INITIAL_ROWS = TRUE", "COMMENT = ''",
)
STREAM_CLAUSES = (
    "ON TABLE", "WITH (TABLE_STREAM_MODE = STANDARD)", "WITH (TABLE_STREAM_MODE = APPEND_ONLY)", "AT (VERSION => ",
    "AT (TIMESTAMP => ",
    "AT (STREAM => ", "BEFORE (VERSION => ", "TIMESTAMP AS OF", "VERSION AS OF", "APPEND_ONLY = TRUE",
    "SHOW_INITIAL_ROWS = TRUE", "COMMENT = ''",
)
CONNECTION_CLAUSES = (
    "TYPE KAFKA", "BOOTSTRAP_SERVERS = ['host:9092']", "SECURITY_PROTOCOL = 'SASL_SSL'", "SASL_MECHANISM = 'PLAIN'",
    "SASL_JAAS_CONFIG = ''", "SSL_TRUSTSTORE_LOCATION = ''", "SSL_TRUSTSTORE_PASSWORD = '${env:", "SSL_KEYSTORE_LOCATION = ''",
    "SSL_KEYSTORE_PASSWORD = '${env:", "SSL_KEY_PASSWORD = '${env:", "OPTIONS (", "COMMENT ''",
)
EXTERNAL_TABLE_CLAUSES = (
    "USING KAFKA", "OPTIONS ('topics' = ''", "CONNECTION", "COMMENT ''", "STORED AS", "LOCATION", "PARTITIONED BY",
    "TBLPROPERTIES",
)
EXTERNAL_TABLE_OPTIONS = (
    "'topics' = ''", "'group_id' = ''", "'starting_offset' = 'earliest'", "'starting_offset' = 'latest'",
    "'ending_offset' = 'latest'", "'kafka.isolation.level' = 'read_committed'",
)
ALTER_STREAM_CLAUSES = (
    "SET COMMENT = ''", "UNSET COMMENT", "RENAME TO", "SET OFFSET TO LATEST", "SET OFFSET VERSION", "SET OFFSET TIMESTAMP",
    "SET OFFSET '{\"0\": 0}'", "RELEASE",
)
ALTER_TABLE_CLAUSES = (
    "SET PROPERTIES ('change_tracking' = 'true')", "SET CHANGE_TRACKING = TRUE", "SET TBLPROPERTIES (", "ADD COLUMNS (",
    "RENAME TO",
    "RENAME COLUMN", "DROP COLUMN", "ALTER COLUMN", "UNSET TBLPROPERTIES (", "CLUSTER BY (",
)

NEVER_NAMES = frozenset((
    "ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT", "MINUS", "NATURAL", "ON", "RIGHT", "SEMI", "UNION",
    "USING", "SELECT", "FROM", "WHERE", "TABLE", "STREAM", "VALUES",
))
"""Words that a name can only be in backquotes, or that read badly as a name."""

TABLE_PLACES = frozenset(("FROM", "JOIN", "INTO", "USING", "UPDATE", "OPTIMIZE", "VACUUM", "OVERWRITE", "DESC", "DESCRIBE"))
"""Words that the name of a table, view or stream follows."""

CLAUSE_WORDS = frozenset((
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "ON", "SET", "VALUES", "LIMIT", "JOIN", "WHEN", "THEN", "BY",
    "QUALIFY", "WITH",
    "INTO", "USING", "UPDATE", "DISTRIBUTE", "SORT", "CLUSTER", "LATERAL", "WINDOW", "PARTITION", "OVER", "IN", "LIKE",
))
"""Words that say what the rest of their level is about."""
# fmt: on
