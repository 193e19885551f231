-- Queries and short statements in forms that Spark does not have.
CREATE TABLE parts (id INTEGER, price NUMBER(9, 3), at TIMESTAMP_NTZ, labels VARIANT, size OBJECT(width INTEGER, height INTEGER));
INSERT INTO parts (id, price, at, labels) SELECT 1, -2.719, '2026-01-05 06:00:00'::TIMESTAMP_NTZ, PARSE_JSON('["red", "new"]');
INSERT INTO parts (id, price, at, labels) SELECT 2, 4.005, '2026-01-06 06:00:00'::TIMESTAMP_NTZ, PARSE_JSON('[]');
-- @rows 1
SELECT id FROM parts WHERE TRUNC(price, 2) = -2.71 AND TRUNC(price) = -2;
-- @rows 3
SELECT p.id, l.value FROM parts p, LATERAL FLATTEN(INPUT => p.labels, OUTER => TRUE) l;
-- @rows 1
SELECT id FROM parts WHERE id NOT IN (SELECT id FROM parts WHERE price > 0);
-- @rows 1
SELECT id FROM parts WHERE id = ANY (SELECT id FROM parts WHERE price > 0);
SELECT EXTRACT(EPOCH_SECOND FROM at) AS seconds, TO_TIMESTAMP_TZ(at) AS with_zone FROM parts;
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) FROM parts;
CREATE TABLE masked (id INTEGER, card VARCHAR WITH MASKING POLICY hide_card);
-- @rows 1
SELECT id, price * 2 AS doubled FROM parts WHERE doubled > 1;
-- @refused * RENAME
SELECT * RENAME price AS cost FROM parts;
-- @refused * ILIKE
SELECT * ILIKE '%p%' FROM parts;
-- @refused ASOF
SELECT a.id FROM parts a ASOF JOIN parts b MATCH_CONDITION (a.at >= b.at);
-- @refused CONNECT BY
SELECT id FROM parts START WITH id = 1 CONNECT BY PRIOR id = id;
-- @refused MATCH_RECOGNIZE
SELECT * FROM parts MATCH_RECOGNIZE (ORDER BY at MEASURES FIRST(at) AS since PATTERN (up+) DEFINE up AS price > 0);
-- @refused stages
SELECT * FROM DIRECTORY(@pictures);
-- @refused USING TEMPLATE
CREATE TABLE guessed USING TEMPLATE (SELECT ARRAY_AGG(OBJECT_CONSTRUCT(*)) FROM TABLE(INFER_SCHEMA(LOCATION => '@pictures')));
CREATE SCHEMA corpus_of_queries;
CREATE TABLE corpus_of_queries.inner_parts (id INTEGER);
DROP SCHEMA corpus_of_queries;
