"""UPDATE and DELETE that Delta Lake does not run as they are: what they become, and which are refused."""

from __future__ import annotations

import pytest

from streamql.features.translate.model import System
from tests.translate.support import becomes, refusal

SNOWFLAKE, DATABEND, CLICKZETTA = System

MERGED = [
    (
        "DELETE FROM tgt WHERE id IN (SELECT id FROM s WHERE METADATA$ACTION = 'DELETE') AND v > 1;",
        (
            "MERGE INTO tgt USING (SELECT DISTINCT id AS _key_1 FROM s WHERE METADATA$ACTION = 'DELETE') AS _source "
            "ON id = _source._key_1 AND v > 1 WHEN MATCHED THEN DELETE;"
        ),
    ),
    (
        "DELETE FROM tgt WHERE (a, b) IN (SELECT a, MAX(b) FROM s GROUP BY a);",
        (
            "MERGE INTO tgt USING (SELECT DISTINCT * FROM (SELECT a, MAX(b) FROM s GROUP BY a) AS _keys(_key_1, _key_2)) "
            "AS _source ON a = _source._key_1 AND b = _source._key_2 WHEN MATCHED THEN DELETE;"
        ),
    ),
    (
        # The name x stays known to WHERE.
        "DELETE FROM tgt WHERE id = ANY (SELECT n + 1 AS x FROM s WHERE y > 1);",
        (
            "MERGE INTO tgt USING (SELECT DISTINCT * FROM (SELECT n + 1 AS x FROM s WHERE y > 1) AS _keys(_key_1)) "
            "AS _source ON id = _source._key_1 WHEN MATCHED THEN DELETE;"
        ),
    ),
    (
        "UPDATE tgt AS t SET v = 1 WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND s.n > 2);",
        (
            "MERGE INTO tgt AS t USING (SELECT DISTINCT s.id AS _key_1 FROM s WHERE s.n > 2) AS _source "
            "ON t.id = _source._key_1 WHEN MATCHED THEN UPDATE SET v = 1;"
        ),
    ),
    (
        "DELETE FROM tgt WHERE id IN (SELECT id FROM s WHERE s.a = tgt.a);",
        (
            "MERGE INTO tgt USING (SELECT DISTINCT id AS _key_1, s.a AS _key_2 FROM s) AS _source "
            "ON id = _source._key_1 AND tgt.a = _source._key_2 WHEN MATCHED THEN DELETE;"
        ),
    ),
    (
        # A relation of the subquery hides the target of the same name.
        "DELETE FROM tgt WHERE id IN (SELECT tgt.id FROM s JOIN tgt ON s.a = tgt.a);",
        (
            "MERGE INTO tgt USING (SELECT DISTINCT tgt.id AS _key_1 FROM s JOIN tgt ON s.a = tgt.a) AS _source "
            "ON id = _source._key_1 WHEN MATCHED THEN DELETE;"
        ),
    ),
]

REFUSED = [
    "DELETE FROM tgt WHERE id NOT IN (SELECT id FROM s)",
    "DELETE FROM tgt WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = tgt.id)",
    "DELETE FROM tgt WHERE id IN (SELECT id FROM s) OR v = 1",
    "DELETE FROM tgt WHERE id IN (SELECT id FROM s) AND a IN (SELECT a FROM s)",
    "DELETE FROM tgt WHERE id = (SELECT MAX(id) FROM s)",
    "DELETE FROM tgt WHERE EXISTS (SELECT 1 FROM s)",
    "DELETE FROM tgt WHERE EXISTS (SELECT COUNT(*) FROM s WHERE s.id = tgt.id)",
    "DELETE FROM tgt WHERE EXISTS (SELECT 1 FROM s WHERE s.id < tgt.id)",
    "DELETE FROM tgt WHERE id IN (SELECT MAX(id) FROM s WHERE s.a = tgt.a)",
    "UPDATE tgt SET v = (SELECT MAX(v) FROM s)",
    "UPDATE tgt SET v = (SELECT s.v FROM s WHERE s.id = tgt.id) WHERE id IN (SELECT id FROM s)",
    "UPDATE tgt SET v = s.v FROM s WHERE s.id = tgt.id AND s.a IN (SELECT a FROM r)",
    "MERGE INTO tgt USING s ON s.id = tgt.id AND s.a IN (SELECT a FROM r) WHEN MATCHED THEN DELETE",
    "MERGE INTO tgt USING s ON s.id = tgt.id WHEN MATCHED AND s.a IN (SELECT a FROM r) THEN DELETE",
]


def test_delete_with_using_does_not_fail_on_several_rows() -> None:
    assert becomes(SNOWFLAKE, "DELETE FROM t USING s WHERE s.id = t.id;") == [
        "-- note: DELETE … USING became MERGE: Delta Lake's DELETE reads one table",
        "MERGE INTO t USING s ON s.id = t.id WHEN MATCHED THEN DELETE;",
    ]


@pytest.mark.parametrize(("statement", "merge"), MERGED)
@pytest.mark.parametrize("system", [SNOWFLAKE, DATABEND])
def test_a_subquery_becomes_the_source_of_merge(statement: str, merge: str, system: System) -> None:
    verb = statement.split(maxsplit=1)[0]
    note = f"-- note: {verb} with a subquery became MERGE: Delta Lake allows no subquery in {verb}"
    assert becomes(system, statement) == [note, merge]


@pytest.mark.parametrize("statement", REFUSED)
def test_other_subqueries_are_refused(statement: str) -> None:
    assert "subquer" in refusal(SNOWFLAKE, statement)


def test_with_stays_before_merge() -> None:
    script = "WITH c AS (SELECT 1 AS id) DELETE FROM t USING c WHERE t.id = c.id;"
    merge = "WITH c AS (SELECT 1 AS id) MERGE INTO t USING c ON t.id = c.id WHEN MATCHED THEN DELETE;"
    assert becomes(SNOWFLAKE, script)[-1] == merge


@pytest.mark.parametrize("system", System)
def test_order_and_limit_are_refused(system: System) -> None:
    assert "ORDER BY or LIMIT" in refusal(system, "UPDATE t SET a = 1 WHERE b > 1 ORDER BY b LIMIT 10")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET a = TO_CHAR(s.x, '999') FROM s WHERE s.id = t.id",
        "DELETE FROM t WHERE a IN (SELECT TO_CHAR(x, '999') FROM s)",
        "INSERT ALL INTO t VALUES (TO_CHAR(x, '999')) SELECT x FROM s",
        "ALTER TABLE t ALTER COLUMN a SET DEFAULT TO_CHAR(1, '999')",
    ],
)
def test_what_spark_has_no_words_for_is_refused_in_every_statement(statement: str) -> None:
    assert refusal(SNOWFLAKE, statement) == "TO_CHAR with a format that is not of dates"
