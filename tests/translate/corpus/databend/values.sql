-- Elements, dates and orders: the pages of these functions.
CREATE TABLE readouts (id INT, doc VARIANT, marks ARRAY(INT), at TIMESTAMP, level INT NULL);
INSERT INTO readouts SELECT 1, PARSE_JSON('{"k": {"n": 5}}'), [7, 8], '2024-02-01 10:00:00'::TIMESTAMP, 3;
INSERT INTO readouts SELECT 2, PARSE_JSON('{}'), [9], '2024-02-02 10:00:00'::TIMESTAMP, NULL;
-- @rows 1
SELECT id FROM readouts WHERE doc['k']['n']::INT = 5 AND marks[1] = 7 AND GET(marks, 2) = 8 AND array_contains(marks, 8);
-- @rows 1
SELECT id FROM readouts WHERE DATE_DIFF(day, '2024-01-31'::DATE, at) = 1 AND DATE_DIFF(month, '2024-01-31'::DATE, at) = 1;
-- @rows 1
SELECT id FROM readouts WHERE DATE_FORMAT(at, '%Y-%m-%d') = '2024-02-01' AND TO_DAY_OF_WEEK(at) = 4;
-- @rows 1
SELECT id FROM (SELECT id, level FROM readouts ORDER BY level DESC LIMIT 1) AS top WHERE level = 3;
-- @rows 2
SELECT OBJECT_CONSTRUCT('id', id) AS o FROM readouts;
-- @rows 1
SELECT id FROM readouts WHERE id = 1 AND REGEXP_SUBSTR('abc def', '[a-z]+') = 'abc' AND INSERT('abcdef', 3, 2, 'zzz') = 'abzzzef';
CREATE TABLE pairs (id INT, pair TUPLE(INT, STRING));

-- All columns of a stream in DML.
CREATE STREAM readouts_st ON TABLE readouts APPEND_ONLY = FALSE;
CREATE TABLE readouts_copy AS SELECT * FROM readouts WHERE 1 = 0;
INSERT INTO readouts SELECT 3, doc, marks, at, level FROM readouts WHERE id = 1;
INSERT INTO readouts_copy SELECT * FROM readouts_st WHERE change$action = 'INSERT';
-- @rows 1
SELECT id FROM readouts_copy;
INSERT INTO readouts SELECT 4, doc, marks, at, level FROM readouts WHERE id = 1;
INSERT INTO readouts_copy SELECT * FROM (SELECT * FROM readouts_st) AS fresh;
-- @rows 2
SELECT id FROM readouts_copy;
