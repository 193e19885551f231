"""The texts of \\help on streams, as data."""

from __future__ import annotations

from streamql.dialect.create import CREATE_GRAMMAR
from streamql.dialect.points import POINT_GRAMMAR
from streamql.dialect.properties import CREATION_GRAMMAR, PROPERTIES_GRAMMAR, TRACKING_GRAMMAR
from streamql.dialect.rewrites.as_of import AS_OF_GRAMMAR, AT_POINT_GRAMMAR
from streamql.dialect.rewrites.changes import CHANGES_GRAMMAR
from streamql.dialect.rewrites.consume import CONSUME_GRAMMAR
from streamql.dialect.streams import ALTER_GRAMMAR, DESCRIBE_GRAMMAR, DROP_GRAMMAR, SHOW_CREATE_GRAMMAR, SHOW_GRAMMAR
from streamql.dialect.transactions import TRANSACTION_GRAMMAR
from streamql.feature import Topic

TOPICS = (
    Topic(
        "ALTER TABLE",
        "let a table's changes be followed",
        (PROPERTIES_GRAMMAR, TRACKING_GRAMMAR, CREATION_GRAMMAR),
        "A table needs change tracking before it can have a stream. It turns on Delta's row tracking, "
        "deletion vectors and in-commit "
        "timestamps; the history that streams can read starts there. A new table can have it from the start.",
        (
            "CREATE TABLE orders (id INT, amount INT);",
            "CREATE TABLE copy (id INT, amount INT);",
            "ALTER TABLE orders SET PROPERTIES ('change_tracking' = 'true');",
        ),
        ("change_tracking", "change tracking"),
    ),
    Topic(
        "CREATE STREAM",
        "make a named offset in a source's history",
        (CREATE_GRAMMAR,),
        "STANDARD shows the net changes: inserts, deletes, and updates as two rows. APPEND_ONLY shows "
        "inserted rows. Without a point in time the stream starts at the newest version. With SHOW_INITIAL_ROWS = TRUE "
        "it also shows the rows that the source has, until its first consumption. Other sources: ON VIEW, "
        "ON DYNAMIC TABLE, ON MATERIALIZED VIEW, ON EXTERNAL TABLE (a Kafka topic; APPEND_ONLY is its only mode). "
        "APPEND_ONLY, INSERT_ONLY and SHOW_INITIAL_ROWS can also be clauses outside of PROPERTIES.",
        (
            "CREATE TABLE STREAM orders_st ON TABLE orders WITH (TABLE_STREAM_MODE = STANDARD);",
            "CREATE OR REPLACE STREAM added ON TABLE orders AT (STREAM => 'orders_st') APPEND_ONLY = TRUE;",
        ),
        ("TABLE_STREAM_MODE", "SHOW_INITIAL_ROWS"),
    ),
    Topic(
        "SELECT",
        "read a stream: the net changes since its offset",
        (
            "SELECT … FROM stream",
            CONSUME_GRAMMAR,
        ),
        "Reading does not move the offset. Three columns come first: __change_type (INSERT, DELETE, "
        "UPDATE_BEFORE, UPDATE_AFTER), "
        "__commit_version and __commit_timestamp, of the row image that is shown. METADATA$ACTION and "
        "METADATA$ISUPDATE can be selected by "
        "name. WITH (CONSUME = TRUE) moves the offset once the rows are read. MAX_BATCH_SIZE limits the rows: a batch "
        "ends with a whole commit, and on a Kafka topic after any message.",
        (
            "INSERT INTO orders VALUES (1, 10), (2, 20);",
            "SELECT __change_type, id, amount FROM orders_st;",
            "SELECT id FROM added WITH (CONSUME = TRUE, MAX_BATCH_SIZE = 1000);",
        ),
        ("CONSUME", "WITH CONSUME", "MAX_BATCH_SIZE", "reading"),
    ),
    Topic(
        "CHANGES",
        "read a table's changes, or the table as it was",
        (CHANGES_GRAMMAR, POINT_GRAMMAR, AS_OF_GRAMMAR, AT_POINT_GRAMMAR),
        "CHANGES shows the changes between any two points that the table's history still has; the end is inclusive. "
        "A point behind the table alone shows the table as it was. AT (STREAM => …) and END (STREAM => …) show it at "
        "the begin and at the end of the interval of a stream that reads the table. None of them moves a stream.",
        (
            "SELECT * FROM orders CHANGES (INFORMATION => DEFAULT) AT (STREAM => 'orders_st');",
            "SELECT * FROM orders AT (VERSION => 1);",
            "SELECT id, o.amount FROM orders_st LEFT JOIN orders END (STREAM => 'orders_st') o USING (id);",
        ),
        ("AT", "BEFORE", "END"),
    ),
    Topic(
        "INSERT",
        "consume a stream: DML that reads it moves it",
        ("INSERT {INTO | OVERWRITE} target SELECT … FROM stream …", "CREATE TABLE target AS SELECT … FROM stream …"),
        "The whole interval is consumed, whatever the WHERE, exactly once, and only if the statement "
        "commits. All references to a stream in "
        "one statement see the same interval; several streams in one statement all move.",
        ("INSERT INTO copy SELECT id, amount FROM orders_st WHERE __change_type = 'INSERT';",),
        ("consuming", "CREATE TABLE AS"),
    ),
    Topic(
        "MERGE",
        "bring a target up to date from a stream",
        ("MERGE INTO target USING stream ON … WHEN [NOT] MATCHED [AND __change_type = '…'] THEN …",),
        "Rows that no clause can act on are dropped first, so that an update's two rows do not meet one target row.",
        (
            "UPDATE orders SET amount = 11 WHERE id = 1;",
            """MERGE INTO copy c USING orders_st s ON c.id = s.id
WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET c.amount = s.amount
WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE
WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT (id, amount) VALUES (s.id, s.amount);""",
        ),
    ),
    Topic(
        "BEGIN TRANSACTION",
        "several statements that consume one interval",
        (TRANSACTION_GRAMMAR,),
        "All statements of the block see the interval that the first one pinned, and the offset moves once, at COMMIT. COMMIT waits for "
        "each statement that failed: run it again, or run a corrected one and withdraw the failed one by ROLLBACK STATEMENT, which takes "
        "the one that failed last. ROLLBACK leaves the offset; what has committed stays, and the same block, run again, skips it. The "
        "prompt tells that a block is open, and leaving the shell rolls it back.",
        (
            "BEGIN TRANSACTION;",
            "INSERT INTO copy SELECT id, amount FROM orders_st;",
            "COMMIT;",
            "INSERT INTO orders VALUES (3, 30);",
            "BEGIN TRANSACTION;",
            "INSERT INTO copy SELECT id, raise_error('no') FROM orders_st; -- fails",
            "ROLLBACK STATEMENT;",
            "ROLLBACK;",
        ),
        ("COMMIT", "ROLLBACK", "ROLLBACK STATEMENT", "START TRANSACTION", "transactions"),
    ),
    Topic(
        "SHOW STREAMS",
        "list streams: mode, offset, lag, staleness",
        (SHOW_GRAMMAR,),
        "\\streams is short for it. A broken stream is listed with its reason. SHOW TERSE STREAMS has few columns and reads no table.",
        ("SHOW STREAMS LIKE 'orders%';", "SHOW TERSE STREAMS;"),
    ),
    Topic(
        "DESCRIBE STREAM",
        "all that is known of one stream",
        (DESCRIBE_GRAMMAR,),
        "\\d name does the same, and shows the columns.",
        ("DESCRIBE STREAM orders_st;",),
    ),
    Topic(
        "SHOW CREATE STREAM",
        "the statement that made a stream",
        (SHOW_CREATE_GRAMMAR,),
        "As it was written.",
        ("SHOW CREATE STREAM orders_st;",),
    ),
    Topic(
        "ALTER STREAM",
        "comment, rename, move the offset, release",
        (ALTER_GRAMMAR,),
        "SET OFFSET TO LATEST skips what has not been read. RELEASE gives up a consumption whose process has ended.",
        (
            "ALTER STREAM orders_st SET COMMENT = 'for the copy';",
            "ALTER STREAM orders_st SET OFFSET TO LATEST;",
        ),
        ("SET OFFSET", "RELEASE"),
    ),
    Topic(
        "stream_has_data",
        "ask a stream before reading it",
        (
            (
                "SELECT stream_has_data('stream'), SYSTEM$STREAM_HAS_DATA('stream'), "
                "SYSTEM$STREAM_GET_TABLE_TIMESTAMP('stream')"
            ),
            "SELECT * FROM stream_backlog('stream'), SELECT * FROM stream_status('stream')",
        ),
        "From the table's log alone: no job runs.",
        ("SELECT stream_has_data('orders_st') AS has_data;", "SELECT * FROM stream_backlog('orders_st');"),
        ("stream_backlog", "stream_status", "SYSTEM$STREAM_HAS_DATA", "SYSTEM$STREAM_GET_TABLE_TIMESTAMP", "functions"),
    ),
    Topic(
        "retention",
        "how long a stream may wait",
        ("ALTER TABLE name SET PROPERTIES ('data_retention_days' = 'n')",),
        "A stream that is not consumed goes stale when its source's history is cleaned up: SHOW STREAMS "
        "tells when (stale_after), and the shell "
        "says so a day before, of those of the current database. VACUUM that would take files from a stream is refused.",
        ("ALTER TABLE orders SET PROPERTIES ('data_retention_days' = '60');",),
        ("stale", "stale_after", "VACUUM", "data_retention_days"),
    ),
    Topic(
        "ledger",
        "who consumed what, and when",
        ("SELECT … FROM streamql.consumptions | streamql.streams | streamql.events",),
        "Tables and views like any other: which statement took which versions of a stream into which "
        "version of which target.",
        ("SELECT stream, from_version, through_version, target, outcome FROM streamql.consumptions;",),
        ("consumptions", "events", "streamql.consumptions"),
    ),
    Topic(
        "DROP STREAM",
        "remove a stream; its table stays",
        (DROP_GRAMMAR,),
        "DROP TABLE does not drop a stream, nor the other way round.",
        ("DROP STREAM added;",),
    ),
)
