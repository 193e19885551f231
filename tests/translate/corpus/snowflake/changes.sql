-- The CHANGES clause, and time travel.
CREATE OR REPLACE TABLE tally (id NUMBER(8) NOT NULL, c VARCHAR(255) DEFAULT NULL);
ALTER TABLE tally SET CHANGE_TRACKING = TRUE;
SET ts1 = (SELECT CURRENT_TIMESTAMP());
INSERT INTO tally (id, c) VALUES (1, 'red'), (2, 'blue'), (3, 'green');
DELETE FROM tally WHERE id = 1;
UPDATE tally SET c = 'purple' WHERE id = 2;
-- @rows 2
SELECT * FROM tally CHANGES (INFORMATION => DEFAULT) AT (TIMESTAMP => $ts1);
-- @rows 3
SELECT * FROM tally CHANGES (INFORMATION => APPEND_ONLY) AT (TIMESTAMP => $ts1);
SET ts2 = (SELECT CURRENT_TIMESTAMP());
SELECT id, METADATA$ACTION FROM tally CHANGES (INFORMATION => DEFAULT) AT (TIMESTAMP => $ts1) END (TIMESTAMP => $ts2);
CREATE OR REPLACE TABLE tally_changes AS
  SELECT id, METADATA$ACTION AS action, METADATA$ISUPDATE AS is_update, METADATA$ROW_ID AS row_id
  FROM tally CHANGES (INFORMATION => APPEND_ONLY) AT (TIMESTAMP => $ts1);
CREATE STREAM tally_st ON TABLE tally;
SELECT * FROM tally CHANGES (INFORMATION => DEFAULT) AT (STREAM => 'tally_st');
SELECT * FROM tally AT (TIMESTAMP => $ts2) ORDER BY id;
SELECT t.id FROM tally AT (STREAM => 'tally_st') AS t;
SELECT count(*) FROM tally AT (OFFSET => 0);
-- @wait
SELECT * FROM tally AT (OFFSET => -1) AS t WHERE t.id = 2;
SELECT * FROM tally CHANGES (INFORMATION => DEFAULT) AT (OFFSET => -1);
SELECT o.id, n.id FROM tally AT (TIMESTAMP => $ts1) AS o FULL OUTER JOIN tally AS n ON o.id = n.id;
CREATE TABLE tally_was AS SELECT * FROM tally AT (TIMESTAMP => $ts2);
SELECT count(*) FROM tally CHANGES (INFORMATION => DEFAULT) BEFORE (TIMESTAMP => $ts2) END (OFFSET => -1);
-- @translated the table is younger than the point in time
SELECT * FROM tally AT (OFFSET => -60*5) AS t WHERE t.id = 1;
-- @translated the table is younger than the point in time
SELECT * FROM tally BEFORE (TIMESTAMP => 'Fri, 01 May 2015 16:20:00 -0700'::TIMESTAMP_TZ);
-- @refused STATEMENT
SELECT * FROM tally BEFORE (STATEMENT => '8e5d0ca9-005e-44e6-b858-a8f5b37c5726');
-- @refused UNDROP
UNDROP TABLE tally;
-- @refused clone
CREATE TABLE tally_restored CLONE tally AT (OFFSET => -3600);
CREATE TABLE tally_clone CLONE tally;
