"""The words of Spark that completion offers and highlighting knows. Those of features are in their records (`words.py`). Data."""

from __future__ import annotations

OURS = "…"
"""Stands where the words of features go among those of Spark; without it they come last."""

# fmt: off
STATEMENTS = (
    "SELECT", "INSERT INTO", "INSERT OVERWRITE", "MERGE INTO", "UPDATE", "DELETE FROM", "WITH", "VALUES", "FROM",
    "CREATE TABLE", "DROP TABLE", "ALTER TABLE", OURS, "CREATE OR REPLACE TABLE", "CREATE VIEW",
    "CREATE OR REPLACE VIEW", "CREATE OR REPLACE TEMPORARY VIEW", "CREATE DATABASE", "CREATE SCHEMA", "CREATE FUNCTION",
    "DROP VIEW", "DROP DATABASE", "DROP SCHEMA", "ALTER VIEW", "SHOW TABLES", "SHOW DATABASES", "SHOW VIEWS", "SHOW COLUMNS IN",
    "SHOW CREATE TABLE", "SHOW TBLPROPERTIES", "SHOW FUNCTIONS", "SHOW PARTITIONS", "DESCRIBE", "DESCRIBE TABLE EXTENDED",
    "DESCRIBE HISTORY", "DESCRIBE DETAIL", "EXPLAIN", "EXPLAIN FORMATTED", "USE", "SET", "RESET", "OPTIMIZE", "VACUUM",
    "RESTORE TABLE", "REFRESH TABLE", "TRUNCATE TABLE", "ANALYZE TABLE", "CACHE TABLE", "UNCACHE TABLE", "DECLARE",
    "EXECUTE IMMEDIATE",
)
"""What a statement may begin with."""

KEYWORDS = frozenset((
    "ADD", "AFTER", "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "ANY", "ARRAY", "AS", "ASC", "BEGIN", "BETWEEN", "BY", "CACHE",
    "CALL", "CASCADE", "CASE", "CAST", "CHANGE", "CLONE", "CLUSTER", "COLUMN", "COLUMNS", "COMMENT", "CONSTRAINT", "CREATE",
    "CROSS", "CUBE", "CURRENT", "DATABASE", "DATABASES", "DECLARE", "DEFAULT", "DELETE", "DESC", "DESCRIBE", "DETAIL",
    "DISTINCT", "DISTRIBUTE", "DO", "DROP", "DRY", "ELSE", "END", "ESCAPE", "EXCEPT", "EXECUTE", "EXISTS", "EXPLAIN",
    "EXTENDED", "EXTERNAL", "FALSE", "FILTER", "FIRST", "FOR", "FORMATTED", "FROM", "FULL", "FUNCTION", "FUNCTIONS",
    "GENERATED", "GROUP", "GROUPING", "HAVING", "HISTORY", "IF", "ILIKE", "IMMEDIATE", "IN", "INNER", "INSERT", "INTERSECT",
    "INTERVAL", "INTO", "IS", "JOIN", "LAST", "LATERAL", "LEFT", "LIKE", "LIMIT", "LOCATION", "LOOP", "MAP", "MATCHED", "MERGE",
    "MINUS", "NATURAL", "NO", "NOT", "NULL", "NULLS", "OF", "OFFSET", "ON", "OPTIMIZE", "OPTIONS", "OR", "ORDER", "OUTER",
    "OVER", "OVERWRITE", "PARTITION", "PARTITIONED", "PARTITIONS", "PIVOT", "PURGE", "QUALIFY", "RANGE", "RECURSIVE", "REFRESH",
    "RENAME", "REPEAT", "REPLACE", "RESET", "RESTORE", "RETAIN", "RIGHT", "RLIKE", "ROLLUP", "ROW", "ROWS", "RUN", "SCHEMA",
    "SCHEMAS", "SELECT", "SEMI", "SET", "SETS", "SHALLOW", "SHOW", "SORT", "SOURCE", "STRUCT", "TABLE", "TABLES", "TABLESAMPLE",
    "TARGET", "TBLPROPERTIES", "TEMP", "TEMPORARY", "THEN", "TO", "TRUE", "TRUNCATE", "UNCACHE", "UNION", "UNPIVOT", "UNSET",
    "UPDATE", "USE", "USING", "VACUUM", "VALUES", "VAR", "VARIABLE", "VERSION", "VIEW", "VIEWS", "WHEN", "WHERE", "WHILE",
    "WINDOW", "WITH", "ZONE", "ZORDER",
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
    OURS, "TIMESTAMP AS OF", "VERSION AS OF",
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
TABLE_FUNCTIONS = ("range", "explode")
"""Functions that may stand in FROM."""

AFTER: dict[tuple[str, ...], tuple[str, ...]] = {
    ("CREATE",): ("TABLE", "OR REPLACE", "VIEW", "TEMPORARY VIEW", "DATABASE", "SCHEMA", "FUNCTION"),
    ("OR", "REPLACE"): ("TABLE", "VIEW", "TEMPORARY VIEW", "FUNCTION"),
    ("CREATE", "TABLE"): (OURS, "IF NOT EXISTS"),
    ("DROP",): ("TABLE", OURS, "VIEW", "DATABASE", "SCHEMA", "FUNCTION"),
    ("ALTER",): ("TABLE", OURS, "VIEW", "DATABASE"),
    ("REFRESH",): ("TABLE", OURS, "FUNCTION"),
    ("EXPLAIN",): ("SELECT", "FORMATTED", "EXTENDED", "INSERT INTO", "MERGE INTO", "WITH"),
    ("SHOW",): (
        OURS, "TABLES", "DATABASES", "VIEWS", "SCHEMAS", "COLUMNS IN", "CREATE TABLE", "TBLPROPERTIES", "FUNCTIONS", "PARTITIONS",
        "TABLE EXTENDED LIKE",
    ),
    ("SHOW", "CREATE"): ("TABLE",),
    ("SHOW", "TABLES"): ("IN", "LIKE"),
    ("GROUP",): ("BY",),
    ("ORDER",): ("BY",),
    ("INSERT",): ("INTO", "OVERWRITE"),
    ("MERGE",): ("INTO",),
    ("DELETE",): ("FROM",),
}
"""The words that follow others: nothing else is offered there but what the place itself asks for."""

CLAUSES_OF: dict[tuple[str, ...], tuple[str, ...]] = {
    ("ALTER", "TABLE"): (
        OURS, "SET TBLPROPERTIES (", "ADD COLUMNS (", "RENAME TO", "RENAME COLUMN", "DROP COLUMN", "ALTER COLUMN",
        "UNSET TBLPROPERTIES (", "CLUSTER BY (",
    ),
}
"""Clauses of statements, by their first keywords."""

NEVER_NAMES = frozenset((
    "ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT", "MINUS", "NATURAL", "ON", "RIGHT", "SEMI", "UNION",
    "USING", "SELECT", "FROM", "WHERE", "TABLE", "VALUES",
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
