-- LATERAL VIEW, dates and JSON: the pages of these functions.
CREATE TABLE crews (id INT, skills ARRAY<STRING>);
INSERT INTO crews VALUES (1, ARRAY('paint', 'weld')), (2, CAST(NULL AS ARRAY<STRING>));
-- @rows 2
SELECT c.id, s.skill FROM crews c LATERAL VIEW EXPLODE(c.skills) s AS skill;
-- @rows 3
SELECT c.id, s.skill FROM crews c LATERAL VIEW OUTER EXPLODE(c.skills) s AS skill;
-- @rows 2
SELECT c.id, s.place, s.skill FROM crews c LATERAL VIEW POSEXPLODE(c.skills) s AS place, skill;
-- @rows 2
SELECT id FROM crews WHERE DATEDIFF(DATE '2024-02-01', DATE '2024-01-31') = 1;
CREATE TABLE forms (id INT, data JSON);
INSERT INTO forms SELECT 1, PARSE_JSON('{"a": {"b": 3}}');
-- @rows 1
SELECT id FROM forms WHERE json_extract_int(data, '$.a.b') = 3 AND json_extract_string(data, '$.a.b') = '3';
-- @rows 1
SELECT TRY_CAST(data['a'] AS ARRAY<INT>) AS none FROM forms WHERE TRY_CAST(PARSE_JSON('[1, 2]') AS ARRAY<INT>) = ARRAY(1, 2);
-- @rows 1
SELECT id FROM forms WHERE REGEXP_SUBSTR('abc def', '[a-z]+') = 'abc' AND OVERLAY('Spark SQL' PLACING '_' FROM 6) = 'Spark_SQL';
-- @rows 1
SELECT id FROM forms WHERE data['a']['b']::INT = 3;
