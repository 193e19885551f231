"""Scripts of other systems as text: what each construct becomes, and that nothing is dropped. No Spark."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.dialect import parse, split
from streamql.features.translate.model import Outcome, Refused, System
from streamql.features.translate.script import translate
from streamql.features.translate.text.comments import comments
from tests.translate.constructs import CHANGED, CLICKZETTA, DATABEND, KEPT, REFUSED, SNOWFLAKE
from tests.translate.corpus import files, translated


@pytest.mark.parametrize(("system", "statement"), KEPT)
def test_what_runs_stays_as_written(system: System, statement: str) -> None:
    assert translate(f"-- before\n{statement};\n", system).text == f"-- before\n{statement};\n"


@pytest.mark.parametrize(("system", "script", "expected"), CHANGED)
def test_what_becomes_of_it(system: System, script: str, expected: str) -> None:
    assert translate(script, system).text == expected


@pytest.mark.parametrize(("system", "statement", "reason"), REFUSED)
def test_refused_by_name(system: System, statement: str, reason: str) -> None:
    translation = translate(f"SELECT 1 AS a;\n{statement};\nSELECT 2 AS b;\n", system)
    refused = next(piece for piece in translation.pieces if isinstance(piece.result, Refused))
    assert isinstance(refused.result, Refused)
    assert reason in refused.result.reason
    assert f"-- not translated: {refused.result.reason}\n" in translation.text
    assert f"\n-- {statement}" in translation.text
    ours = [fragment.text for fragment in split(translation.text)]
    assert ours == ["SELECT 1 AS a", "SELECT 2 AS b"][: len(translation.pieces) - 1]


def test_a_task_has_its_statements_translated() -> None:
    script = """CREATE TASK fill WAREHOUSE = w SCHEDULE = '5 minutes' WHEN SYSTEM$STREAM_HAS_DATA('s') AS
BEGIN
  INSERT INTO t SELECT IFF(a, 1, 2) FROM s; -- one
  CALL tidy();
END;
SELECT 1;
"""
    assert translate(script, SNOWFLAKE).text == (
        "-- not translated: a statement of the task: CALL: Spark does not run procedures and functions of this language\n"
        "-- instead: use a job of your own, or Spark's CREATE FUNCTION\n"
        "-- CREATE TASK fill WAREHOUSE = w SCHEDULE = '5 minutes' WHEN SYSTEM$STREAM_HAS_DATA('s') AS\n"
        "-- BEGIN\n"
        "--   INSERT INTO t SELECT IFF(a, 1, 2) FROM s; -- one\n"
        "--   CALL tidy();\n"
        "-- END;\n"
        "-- its statements, translated:\n"
        "--   INSERT INTO t SELECT IF(a, 1, 2) FROM s;\n"
        "--   -- not translated: CALL: Spark does not run procedures and functions of this language\n"
        "--   -- CALL tidy();\n"
        "SELECT 1;\n"
    )


def test_a_task_stays_a_task() -> None:
    script = """CREATE TASK fill WAREHOUSE = w SCHEDULE = '5 minutes' WHEN SYSTEM$STREAM_HAS_DATA('s') AS
BEGIN
  INSERT INTO t SELECT IFF(a, 1, 2) FROM s;
  DELETE FROM u WHERE NVL(a, b);
END;
ALTER TASK fill RESUME;
ALTER TASK fill MODIFY AS INSERT INTO t SELECT IFF(a, 3, 4) FROM s;
EXECUTE TASK fill;
"""
    assert translate(script, SNOWFLAKE).text == (
        "-- note: streamql scheduler runs tasks, and has to be started\n"
        "CREATE TASK fill WAREHOUSE = w SCHEDULE = '5 minutes' WHEN SYSTEM$STREAM_HAS_DATA('s') AS\n"
        "BEGIN\n"
        "  INSERT INTO t SELECT IF(a, 1, 2) FROM s;\n"
        "  DELETE FROM u WHERE COALESCE(a, b);\n"
        "END;\n"
        "ALTER TASK fill RESUME;\n"
        "ALTER TASK fill MODIFY AS INSERT INTO t SELECT IF(a, 3, 4) FROM s;\n"
        "EXECUTE TASK fill;\n"
    )


def test_comments_are_kept() -> None:
    script = """// a comment of Snowflake's
SELECT IFF(a, -- why; not
  1, /* or
  this */ 2) FROM t; -- behind it
-- C:\\
GRANT x TO y; /* after; a refusal */
-- the end
"""
    text = translate(script, SNOWFLAKE).text
    for comment in ("-- a comment of Snowflake's", "why; not", "-- behind it", "/* after; a refusal */", "-- the end"):
        assert comment in text
    assert [fragment.text[:6] for fragment in split(text)] == ["SELECT"]


@pytest.mark.parametrize("system", System)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE STREAM s ON '\nDROP TABLE t; --'",
        "CREATE STREAM s ON TABLE t COMENT '\rDROP TABLE t;'",
        "DROP STREAM s '\n;DROP TABLE t; --'",
        "SELECT 'a\nDROP TABLE t;' /* \\\n */ FROM FROM",
        "CREATE TASK k AS CALL p('\nDROP TABLE t;'); -- \\",
    ],
)
def test_a_reason_stays_in_its_comment(statement: str, system: System) -> None:
    """Errors quote the statement, which may have lines that would be statements of their own."""
    translation = translate(f"{statement};\nSELECT 1", system)
    assert isinstance(translation.pieces[0].result, Refused)
    assert [fragment.text for fragment in split(translation.text)] == ["SELECT 1"]


@pytest.mark.parametrize("file", files(), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_nothing_is_dropped(file: Path) -> None:
    """Each statement of the corpus is in the translation: as statements, or as comments with a reason. So are the comments."""
    translation = translated(file)
    expected: list[str] = []
    for piece in translation.pieces:
        if isinstance(piece.result, Refused):
            assert f"-- not translated: {piece.result.reason}" in translation.text
            assert all(f"-- {line}".rstrip() in translation.text for line in piece.source.splitlines())
        else:
            expected += piece.result.statements
    assert [without_comments(f.text) for f in split(translation.text)] == [without_comments(text) for text in expected]
    words = " ".join(translation.text.split())
    for comment in comments(file.read_text(encoding="utf-8")):
        assert " ".join(comment.strip("-/* \n").split()) in words
    assert len(translation.pieces) == sum(translation.count(outcome) for outcome in Outcome)


def without_comments(text: str) -> str:
    return split(text + ";")[0].text


PIECES = st.sampled_from(
    ["SELECT 1", "GRANT a TO b", "CREATE STREAM s ON TABLE t", "-- c;\n", "/* d; */", ";", "\n", " ", "'", '"', "`",
     "$$", "BEGIN", "END", "CREATE TASK k AS", "CREATE TABLE t (a INT", "AS", "MERGE INTO t USING s ON", "FLATTEN(v)",
     "//", "\\", "AT (TIMESTAMP => '2020-01-01'::DATE)", "SELECT * FROM s", "(", ")", "$1", ", ", "'a\nb'",
     "DATA_RETENTION_TIME_IN_DAYS = x", "CLUSTER BY", "CHANGES (INFORMATION => DEFAULT)", "INSERT ALL INTO t"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12), st.sampled_from(System))
def test_any_text_is_translated_without_an_error(pieces: list[str], system: System) -> None:
    script = " ".join(pieces)
    translation = translate(script, system)
    for piece in translation.pieces:
        if isinstance(piece.result, Refused):
            assert "the translator failed" not in piece.result.reason
            assert f"-- not translated: {' '.join(piece.result.reason.split())}" in translation.text
        else:
            assert all(statement in translation.text for statement in piece.result.statements)
    # What was refused is not run.
    ran = [fragment.text for fragment in split(translation.text) if fragment.text.strip()]
    assert len(ran) == sum(len(p.result.statements) for p in translation.pieces if not isinstance(p.result, Refused)), (
        translation.text
    )


def test_statements_of_ours_can_be_parsed() -> None:
    """What the translation prints about streams and dynamic tables is in our own grammar."""
    found = 0
    for file in files():
        for piece in translated(file).pieces:
            if not isinstance(piece.result, Refused):
                found += sum(parse(statement) is not None for statement in piece.result.statements)
    assert found > 100


def test_a_session_does_not_import_sqlglot() -> None:
    program = (
        "import sys, streamql, streamql.cli.main, streamql.features.translate.command; print('sqlglot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# --- comments inside statements that are written anew

COMMENTED = [
    (SNOWFLAKE, "CREATE STREAM r /* why */ CLONE s"),
    (SNOWFLAKE, "SET /* why */ x = 1"),
    (SNOWFLAKE, "USE SCHEMA -- why\n a"),
    (SNOWFLAKE, "ALTER TABLE t /* why */ SET DATA_RETENTION_TIME_IN_DAYS = 3"),
    (SNOWFLAKE, "SHOW TABLES /* why */ LIKE 'a%'"),
    (SNOWFLAKE, "SHOW STREAMS /* why */ IN ACCOUNT"),
    (SNOWFLAKE, "EXPLAIN /* why */ SELECT 1"),
    (SNOWFLAKE, "EXPLAIN USING TEXT SELECT /* why */ IFF(a, 1, 2) FROM t"),
    (SNOWFLAKE, "CREATE STREAM r COPY GRANTS -- why\n ON TABLE t"),
    (SNOWFLAKE, "CREATE STREAM r WITH TAG (a = 'b' -- why\n) ON TABLE t"),
    (SNOWFLAKE, "BEGIN TRANSACTION NAME x /* why */"),
    (SNOWFLAKE, "CREATE OR ALTER /* why */ TABLE t (a INT)"),
    (SNOWFLAKE, "UPDATE t /* why */ SET a = s.a FROM s WHERE s.id = t.id"),
    (DATABEND, "REPLACE INTO t (a) -- why\n ON (a) VALUES (1)"),
    (DATABEND, "OPTIMIZE TABLE /* why */ t COMPACT"),
    (DATABEND, "ALTER TABLE t SET OPTIONS (/* why */ change_tracking = true)"),
    (CLICKZETTA, "CREATE TABLE t (id BIGINT PRIMARY KEY DISABLE /* why */ NOVALIDATE RELY)"),
]


@pytest.mark.parametrize(("system", "statement"), COMMENTED)
def test_a_comment_is_kept(system: System, statement: str) -> None:
    translation = translate(f"CREATE STREAM s ON TABLE t; {statement}; SELECT 1;", system)
    assert not any(isinstance(piece.result, Refused) for piece in translation.pieces)
    assert len([c for c in comments(translation.text) if c.strip("-/* ") == "why"]) == 1
    assert split(translation.text)[-1].text == "SELECT 1"


def test_each_of_equal_comments_is_kept() -> None:
    """A comment is not lost because another one has the same words, or contains them."""
    script = "SET /* id */ x = /* id of it */ 1; REPLACE INTO t (a) -- id\n ON (a) -- id\n VALUES (1);"
    kept = Counter(c.strip("-/* \n") for c in comments(translate(script.replace("SET", "SET VARIABLE"), DATABEND).text))
    assert kept["id"] == 3
    assert kept["id of it"] == 1
