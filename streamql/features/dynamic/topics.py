"""The texts of \\help on dynamic tables and materialized views, as data."""

from __future__ import annotations

from streamql.feature import Topic
from streamql.features.dynamic.language.about import (
    DESCRIBE_DYNAMIC_GRAMMAR,
    DROP_DYNAMIC_GRAMMAR,
    EXPLAIN_REFRESH_GRAMMAR,
    REFRESH_DYNAMIC_GRAMMAR,
    SHOW_CREATE_DYNAMIC_GRAMMAR,
    SHOW_DYNAMIC_GRAMMAR,
    SHOW_HISTORY_GRAMMAR,
    VERIFY_DYNAMIC_GRAMMAR,
)
from streamql.features.dynamic.language.alter import ALTER_DYNAMIC_GRAMMAR
from streamql.features.dynamic.language.create import CREATE_DYNAMIC_GRAMMAR

TOPICS = (
    Topic(
        "CREATE DYNAMIC TABLE",
        "store a query's rows, and keep them up to date",
        (CREATE_DYNAMIC_GRAMMAR, SHOW_CREATE_DYNAMIC_GRAMMAR),
        "The table holds the rows of its query. A refresh writes only the rows that differ, so a stream on the table shows "
        "minimal changes. TARGET_LAG says how old the rows may become, REFRESH INTERVAL when refreshes begin, and DOWNSTREAM "
        "that the table is refreshed with those that read it. No service refreshes it: streamql refresh --loop does, or "
        "streamql refresh --due from cron. A table without a schedule is refreshed by REFRESH, by streamql refresh without --due, "
        "and before a table that reads it. A materialized view is the same under another name.",
        (
            """CREATE DYNAMIC TABLE totals TARGET_LAG = '10 minutes' AS
SELECT id % 2 = 1 AS is_odd, sum(amount) AS amount FROM orders GROUP BY id % 2 = 1;""",
            """CREATE MATERIALIZED VIEW large BUILD DEFERRED REFRESH INTERVAL 1 HOUR AS
SELECT * FROM totals WHERE amount > 10;""",
            "CREATE STREAM totals_st ON DYNAMIC TABLE totals;",
            "SHOW CREATE MATERIALIZED VIEW large;",
        ),
        (
            "DYNAMIC TABLE",
            "MATERIALIZED VIEW",
            "TARGET_LAG",
            "REFRESH INTERVAL",
        ),
    ),
    Topic(
        "REFRESH DYNAMIC TABLE",
        "refresh now; explain a refresh; verify the rows",
        (REFRESH_DYNAMIC_GRAMMAR, EXPLAIN_REFRESH_GRAMMAR, VERIFY_DYNAMIC_GRAMMAR),
        "REFRESH first refreshes the dynamic tables that the table reads, all from one set of versions of the tables below. "
        "EXPLAIN REFRESH shows what a refresh would do, and writes nothing. VERIFY computes the query again at the versions of "
        "the last refresh, and compares all rows.",
        (
            "INSERT INTO orders VALUES (7, 70);",
            "EXPLAIN REFRESH DYNAMIC TABLE totals;",
            "REFRESH MATERIALIZED VIEW large;",
            "SELECT * FROM totals_st;",
            "VERIFY DYNAMIC TABLE totals;",
        ),
        (
            "EXPLAIN REFRESH",
            "VERIFY",
            "refresh",
        ),
    ),
    Topic(
        "SHOW DYNAMIC TABLES",
        "list dynamic tables: lag, last refresh, history",
        (SHOW_DYNAMIC_GRAMMAR, SHOW_HISTORY_GRAMMAR, DESCRIBE_DYNAMIC_GRAMMAR),
        "The lag is the age of the oldest change that the table does not show. The history has the refreshes that wrote, and "
        "those that failed. streamql watch shows lag and target live, and streamql report draws which table reads which.",
        (
            "SHOW DYNAMIC TABLES LIKE 'tot%';",
            "SHOW DYNAMIC TABLE REFRESH HISTORY FOR totals LIMIT 10;",
            "DESCRIBE MATERIALIZED VIEW large;",
        ),
        (
            "REFRESH HISTORY",
            "lag",
        ),
    ),
    Topic(
        "ALTER DYNAMIC TABLE",
        "suspend, resume, another schedule; drop",
        (ALTER_DYNAMIC_GRAMMAR, DROP_DYNAMIC_GRAMMAR),
        "Only REFRESH and streamql refresh NAME refresh a suspended table. Tables that read it are not refreshed. A stream on the "
        "table continues after RENAME, and raises STREAM_SOURCE_MISSING after DROP.",
        (
            "ALTER DYNAMIC TABLE totals SET TARGET_LAG = '1 hour';",
            "ALTER MATERIALIZED VIEW large SUSPEND;",
            "DROP STREAM totals_st;",
            "DROP MATERIALIZED VIEW large;",
            "DROP DYNAMIC TABLE totals;",
        ),
        (
            "SUSPEND",
            "RESUME",
            "UNSET SCHEDULE",
        ),
    ),
)
