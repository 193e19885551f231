"""What streams on views refuse, each by its name, and what they take."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.sources.views.texts import REFUSED
from tests.consume.support import path_of
from tests.sample import sample
from tests.views.support import Place

CASES = {
    "AGGREGATE": (
        "SELECT v, count(*) AS n FROM t GROUP BY v",
        "SELECT max(v) AS m FROM t",
        "SELECT 1 AS x FROM t HAVING true",
    ),
    "CONSTANT_ROWS": (
        "SELECT * FROM VALUES (1), (2) AS x(a)",
        "SELECT 1 AS x",
        "SELECT id FROM t UNION ALL SELECT 7L",
        "SELECT t.id, r.id AS n FROM t CROSS JOIN range(3) r",
    ),
    "CURRENT_TIME": (
        "SELECT id, current_timestamp() AS x FROM t",
        "SELECT id FROM t WHERE v < unix_timestamp()",
        "SELECT id, current_date() AS x FROM t",
        "SELECT id, localtimestamp() AS x FROM t",
        "SELECT id, now() AS x FROM t",
        "SELECT id FROM t WHERE CAST('today' AS DATE) > DATE '2024-01-01'",
        "SELECT id FROM t WHERE CAST(concat('to', 'day') AS DATE) > DATE '2024-01-01'",
        "SELECT id FROM t WHERE CAST(nvl('today', 'x') AS DATE) > DATE '2024-01-01'",
        "SELECT id, TIMESTAMP 'now' AS x FROM t",
        "SELECT id FROM t WHERE DATE'yesterday' > DATE '2024-01-01'",
        "SELECT id, to_timestamp('now') AS x FROM t",
        "SELECT id FROM t WHERE to_date('tomorrow') > DATE '2024-01-01'",
    ),
    "COPY": ("SELECT t.id FROM t JOIN copied ON t.id = copied.id", "SELECT id FROM t UNION ALL SELECT id FROM copied"),
    "DISTINCT": (
        "SELECT DISTINCT v FROM t",
        "SELECT id FROM t UNION SELECT id FROM u",
        "SELECT t.v FROM (SELECT DISTINCT * FROM t) t",
    ),
    "FILE_METADATA": ("SELECT id, _metadata.file_path AS f FROM t", "SELECT id FROM t WHERE _metadata.row_id > 1"),
    "FOREIGN_TABLE": (
        "SELECT * FROM p",
        "SELECT t.id, p.x FROM t JOIN p ON t.id = p.x",
        "SELECT * FROM parquet.`{path}`",
    ),
    "GENERATE": (
        "SELECT id, explode(array(1, 2)) AS e FROM t",
        "SELECT id, e FROM t LATERAL VIEW explode(array(v)) x AS e",
    ),
    "LIMIT": ("SELECT * FROM t LIMIT 3", "SELECT * FROM t ORDER BY id LIMIT 3 OFFSET 1", "SELECT * FROM t OFFSET 2"),
    "NON_DETERMINISTIC": (
        "SELECT id, rand() AS x FROM t",
        "SELECT id FROM t WHERE rand(5) < 0.5",
        "SELECT id, uuid() AS x FROM t",
        "SELECT id, monotonically_increasing_id() AS x FROM t",
        "SELECT id, input_file_name() AS x FROM t",
        "SELECT id, aes_encrypt('x', '0000111122223333') AS x FROM t",
    ),
    "OTHER_OPERATOR": (
        "SELECT id, name, value FROM (SELECT id, v, id AS i FROM t) UNPIVOT (value FOR name IN (v, i))",
        "SELECT t.id, x.w FROM t, LATERAL (SELECT u.w FROM u WHERE u.id = t.id) x",
        "WITH RECURSIVE r(n) AS (SELECT id FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
    ),
    "OUTER_JOIN": tuple(
        f"SELECT t.id, u.w FROM t {how} JOIN u ON t.id = u.id" for how in ("LEFT", "RIGHT OUTER", "FULL")
    ),
    "SAMPLE": ("SELECT * FROM t TABLESAMPLE (50 PERCENT)",),
    "SEMI_JOIN": ("SELECT * FROM t LEFT SEMI JOIN u ON t.id = u.id", "SELECT * FROM t LEFT ANTI JOIN u ON t.id = u.id"),
    "SESSION_STATE": (
        "SELECT id, current_user() AS x FROM t",
        "SELECT id, session_user() AS x FROM t",
        "SELECT id FROM t WHERE current_schema() = 'x'",
        "SELECT id, current_catalog() AS x FROM t",
        "SELECT id, current_timezone() AS x FROM t",
    ),
    "SET_OPERATION": ("SELECT id FROM t INTERSECT SELECT id FROM u", "SELECT id FROM t EXCEPT ALL SELECT id FROM u"),
    "STREAM": ("SELECT id FROM on_t", "SELECT t.id FROM t JOIN on_t s ON t.id = s.id", "SELECT id FROM over_stream"),
    "SUBQUERY": (
        "SELECT * FROM t WHERE id IN (SELECT id FROM u)",
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)",
        "SELECT id, (SELECT max(w) FROM u) AS x FROM t",
        "SELECT * FROM t WHERE id NOT IN (SELECT id FROM u)",
    ),
    "TIME_TRAVEL": ("SELECT * FROM t VERSION AS OF 0", "SELECT t.id FROM t JOIN u VERSION AS OF 0 ON t.id = u.id"),
    "USER_FUNCTION": ("SELECT id, twice(v) AS x FROM t", "SELECT id FROM t WHERE twice(v) > 3"),
    "WINDOW": (
        "SELECT id, row_number() OVER (PARTITION BY v ORDER BY id) AS n FROM t",
        "SELECT id, sum(v) OVER () AS n FROM t",
    ),
}
OF_DYNAMIC_TABLES = {
    "INEXACT_VALUE",
    "JOIN_WITHOUT_EQUALITY",
    "KEY_COLUMN",
    "NO_KEY",
    "ORDER_OF_ROWS",
    "SCALAR_SUBQUERY",
    "SESSION_WINDOW",
    "TEMPORARY_VIEW",
    "SUBQUERY_VALUE",
    "UNCOMPARABLE_COLUMN",
    "UNPARTITIONED_WINDOW",
}

ACCEPTED = {
    "order": "SELECT * FROM t ORDER BY v DESC",
    "hint": "SELECT /*+ BROADCAST(u) */ t.id, w FROM t JOIN u ON t.id = u.id",
    "using": "SELECT * FROM t JOIN u USING (id)",
    "natural": "SELECT * FROM t NATURAL JOIN u",
    "repartition": "SELECT /*+ REPARTITION(3) */ * FROM t",
    "with": "WITH x AS (SELECT id FROM t WHERE v > 1) SELECT a.id, b.id AS other FROM x a JOIN x b ON a.id = b.id",
    "path": "SELECT * FROM delta.`{path_t}`",
    "stack of unions": "SELECT id FROM t UNION ALL (SELECT id FROM u UNION ALL SELECT v FROM t)",
    "values in an expression": "SELECT * FROM t WHERE id IN (1, 2, 3) AND v BETWEEN 1 AND 5",
    "function of SQL": "SELECT id, coalesce(nullif(v, 0), -1) AS x FROM t",
    "cast of a function": "SELECT id FROM t WHERE CAST(nvl('2024-01-01', 'x') AS DATE) < DATE '2025-01-01'",
    "encrypted": "SELECT id, aes_encrypt('x', '0000111122223333', 'ECB') AS x FROM t",
    "time": "SELECT id, to_date('2024-01-01') AS x FROM t WHERE TIMESTAMP '2024-01-01 00:00:00' > DATE '2023-01-01'",
}


@pytest.fixture(scope="module")
def shared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Path]]:
    """Give tables, a stream, a function and Parquet files that the cases name."""
    place, path = Place(spark), tmp_path_factory.mktemp("files") / "p"
    place.open()
    spark.range(3).write.parquet(str(path))
    shutil.copytree(path_of(spark, "t"), path.parent / "copied")
    place.run(
        f"CREATE TABLE copied USING DELTA LOCATION '{path.parent / 'copied'}'",
        "CREATE TABLE p (x BIGINT) USING PARQUET",
        "CREATE STREAM on_t ON TABLE t",
        "CREATE VIEW over_stream AS SELECT id FROM on_t",
        "CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2",
    )
    yield place, path
    place.close()


@pytest.fixture
def here(shared: tuple[Place, Path]) -> tuple[Place, Path]:
    """Give the same, its schema the current one."""
    shared[0].run(f"USE {shared[0].schema}")
    return shared


def test_each_reason_has_a_case() -> None:
    assert set(CASES) | OF_DYNAMIC_TABLES == set(REFUSED)


@pytest.mark.parametrize(
    ("key", "text"), [(key, text) for key, texts in CASES.items() for text in sample(f"refused: {key}", texts, 1)]
)
def test_a_view_is_refused_by_what_is_in_it(here: tuple[Place, Path], key: str, text: str) -> None:
    place, path = here
    place.run(f"CREATE OR REPLACE VIEW bad AS {text.format(path=path)}")
    found = place.refused("CREATE OR REPLACE STREAM no ON VIEW bad")
    assert found.code == "UNSUPPORTED_SOURCE"
    reason = f"the view {place.schema}.bad {REFUSED[key]}"  # behind it may be the name of a function
    assert found.message == reason or (found.message.startswith(f"{reason}: ") and found.message.endswith("()"))
    assert found.hint is not None
    assert "UNION ALL" in found.hint


@pytest.mark.parametrize("name", sample("accepted views", list(ACCEPTED), 4))
def test_a_view_is_taken(here: tuple[Place, Path], name: str) -> None:
    place, _ = here
    location = place.run("DESCRIBE DETAIL t")[0]["location"]
    place.run(f"CREATE OR REPLACE VIEW good AS {ACCEPTED[name].format(path_t=location)}")
    place.run("CREATE OR REPLACE STREAM yes ON VIEW good WITH (SHOW_INITIAL_ROWS = TRUE)")
    place.run("INSERT INTO t VALUES (1, 5), (2, 0)", "INSERT INTO u VALUES (1, 'x')")
    seen = place.changes("yes")
    assert seen == Counter({("INSERT", *row): n for row, n in place.bag("SELECT * FROM good").items()})
    assert seen


def test_what_is_inside_a_nested_view_counts(here: tuple[Place, Path]) -> None:
    place, _ = here
    place.run("CREATE OR REPLACE VIEW inner_view AS SELECT v, count(*) AS n FROM t GROUP BY v")
    place.run("CREATE OR REPLACE VIEW outer_view AS SELECT n FROM inner_view WHERE v > 1")
    assert REFUSED["AGGREGATE"] in place.refused("CREATE OR REPLACE STREAM no ON VIEW outer_view").message


def test_a_session_variable_is_refused(here: tuple[Place, Path]) -> None:
    place, _ = here
    place.run("DECLARE OR REPLACE VARIABLE limit_of_v BIGINT DEFAULT 3")
    with pytest.raises(Exception, match=r"(?i)variable"):  # Spark's own: a view cannot name one
        place.run("CREATE OR REPLACE VIEW bad AS SELECT * FROM t WHERE v > limit_of_v")


def test_each_table_must_track_changes(place: Place) -> None:
    place.table("plain", "id BIGINT", tracked="")
    place.run("CREATE VIEW v AS SELECT t.id FROM t JOIN plain ON t.id = plain.id")
    found = place.refused("CREATE STREAM s ON VIEW v")
    assert found.code == "CHANGE_TRACKING_DISABLED"
    assert f"{place.schema}.plain does not track changes" in found.message
    assert found.hint == f"ALTER TABLE {place.schema}.plain SET PROPERTIES ('change_tracking' = 'true')"
    place.run("ALTER TABLE plain SET PROPERTIES ('change_tracking' = 'true')", "CREATE STREAM s ON VIEW v")


@pytest.mark.parametrize("name", ["__change_type", "__Commit_Version", "__streamql_x"])
def test_names_of_metadata_columns_are_refused(place: Place, name: str) -> None:
    place.run(f"CREATE VIEW v AS SELECT id AS {name} FROM t")
    assert place.refused("CREATE STREAM s ON VIEW v").code == "RESERVED_COLUMN_NAME"


def test_a_view_is_no_table_and_a_table_no_view(place: Place) -> None:
    place.run("CREATE VIEW v AS SELECT id FROM t", "CREATE TEMPORARY VIEW of_session AS SELECT * FROM t")
    assert place.refused("CREATE STREAM s ON TABLE v").code == "UNSUPPORTED_SOURCE"
    assert place.refused("CREATE STREAM s ON VIEW t").code == "UNSUPPORTED_SOURCE"
    assert place.refused("CREATE STREAM s ON VIEW nothing").code == "TABLE_NOT_FOUND"
    assert place.refused("CREATE STREAM s ON VIEW of_session").code == "UNSUPPORTED_SOURCE"
