-- Tasks, and DML around streams.
CREATE TABLE events (at TIMESTAMP, id INT, kind STRING, payload VARIANT, tags ARRAY(STRING), extra MAP(STRING, INT));
CREATE STREAM events_st ON TABLE events APPEND_ONLY = false;
CREATE TABLE events_by_kind (kind STRING, n BIGINT);
INSERT INTO events SELECT NOW(), 1, 'click', PARSE_JSON('{"page": "home"}'), ['a', 'b'], {'x': 1};
INSERT INTO events_by_kind SELECT kind, COUNT(*) FROM events_st WHERE change$action = 'INSERT' GROUP BY kind;
-- @rows 1
SELECT * FROM events_by_kind;
CREATE OR REPLACE TASK count_events
    WAREHOUSE = 'etl_small' -- the warehouse
    SCHEDULE = 1 MINUTE
    WHEN STREAM_STATUS('default.events_st') = TRUE
AS
INSERT INTO events_by_kind SELECT kind, COUNT(*) FROM events_st GROUP BY kind;
CREATE TASK nightly WAREHOUSE = 'etl_small' SCHEDULE = USING CRON '0 0 0 * * *' 'Asia/Tokyo' AS
BEGIN
    BEGIN;
    INSERT INTO events_by_kind SELECT kind, 1 FROM events_st;
    COMMIT;
END;
ALTER TASK count_events RESUME;
SHOW TASKS LIKE 'count_%';
-- @refused tasks
SELECT * FROM SYSTEM$TASK_HISTORY('count_events') LIMIT 5;
DROP TASK count_events;
-- @refused stages
COPY INTO events FROM @landing FILE_FORMAT = (TYPE = PARQUET);
-- @refused STAGE
CREATE STAGE landing;

CREATE TABLE employees (id INT, name VARCHAR, salary UInt64);
INSERT INTO employees VALUES (1, 'Ines', 900), (2, 'Omar', 800);
CREATE TABLE raises (id INT, name VARCHAR, salary UInt64);
INSERT INTO raises VALUES (2, 'Omar', 850), (3, 'Lena', 700);
MERGE INTO employees USING (SELECT * FROM raises) AS r ON employees.id = r.id
    WHEN MATCHED THEN UPDATE *
    WHEN NOT MATCHED THEN INSERT *;
-- @rows 3
SELECT id, to_string(salary), today() FROM employees;
REPLACE INTO employees (id, name, salary) ON (id) VALUES (3, 'Lena', 720), (4, 'Ken', 650);
-- @rows 4
SELECT * FROM employees;
-- @refused columns
REPLACE INTO employees ON (id) SELECT * FROM raises;
OPTIMIZE TABLE employees COMPACT;
CREATE STREAM employees_st ON TABLE employees APPEND_ONLY = false;
UPDATE employees SET salary = salary + 10 WHERE id = 4;
SELECT * FROM employees_st WHERE change$action = 'INSERT';
DESC TABLE employees;
-- @refused session
SET enable_experimental_merge_into = 1;
