"""The command against Spark: in this process, where its session is shared with the other tests."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.cli.main import main
from streamql.consume.effects import Effect, Move, Write, from_json
from streamql.extension.embedded import embedded_conf
from streamql.settings import EFFECTS, WANTS_EFFECTS

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command over the data directory of the tests' session: exit code, stdout, stderr."""
    data = str(Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")).parent)

    def call(*argv: str) -> tuple[int, str, str]:
        code = main(["--data", data, *argv])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def database(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the test's own; the shared session's current one is as before afterwards."""
    name = f"cli_{request.node.name}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql("USE default")


VALUES = """
    SELECT CAST(1.50 AS DECIMAL(10, 3)) AS d, x'0aff' AS b, map('a', array(1, null)) AS m, float(1.1) AS f,
      array(float(0.1)) AS fs, named_struct('p', 1, 'q', 'x,y') AS s, double('nan') AS n, '' AS e, CAST(NULL AS VOID) AS u,
      timestamp'2024-01-01 10:00:00.5' AS t, date'-0044-03-15' AS dt, INTERVAL '1' DAY AS i, make_interval(1, 2) AS ci,
      array(timestamp'2024-01-01 10:00:00') AS ts, parse_json('{"a":1}') AS v, 1e20D AS g, 1 AS d
"""


def test_formats_of_spark_values(run: Run) -> None:
    code, out, err = run("--output", "json", "-e", VALUES)
    assert (code, err) == (0, "")
    assert out == (
        '{"d": 1.500, "b": "Cv8=", "m": {"a": [1, null]}, "f": 1.1, "fs": [0.1], "s": {"p": 1, "q": "x,y"}, "n": "NaN", '
        '"e": "", "u": null, "t": "2024-01-01 10:00:00.5", "dt": "-0044-03-15", "i": "INTERVAL \'1\' DAY", '
        '"ci": "1 years 2 months", "ts": ["2024-01-01 10:00:00"], "v": {"a":1}, "g": 1e+20, "d_2": 1}\n'
    )
    json.loads(out)
    code, out, err = run("--output", "csv", "-e", VALUES)
    header, row = csv.reader(io.StringIO(out))
    assert header[:3] == ["d", "b", "m"]
    assert row[:6] == ["1.500", "0AFF", '{"a": [1, null]}', "1.1", "[0.1]", '{"p": 1, "q": "x,y"}']
    assert row[6:] == ["NaN", "", "", *row[9:14], '{"a":1}', "1.0E20", "1"]
    code, out, err = run("-e", VALUES)
    assert "| {a -> [1, NULL]} | 1.1 | [0.1] | {1, x,y} | NaN |   | NULL | 2024-01-01 10:00:00.5 |" in out


def test_a_script(run: Run, database: str, tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text(
        """-- made for a test; really
        CREATE TABLE t (id INT, v STRING);  /* and; another */
        INSERT INTO t VALUES (1, 'a;b'), (2, NULL);
        MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 9) s ON t.id = s.id
          WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new');
        WITH x AS (SELECT 10 AS id, 'x' AS v) INSERT INTO t SELECT * FROM x;
        SELECT * FROM t ORDER BY id;
        BEGIN
          SELECT 1; SELECT 2 AS two;
        END;
        EXECUTE IMMEDIATE 'UPDATE t SET v = 1';
        SET a.b = 1;
        DELETE FROM t WHERE id = 2;
        OPTIMIZE t;
        EXPLAIN SELECT 1""",
        encoding="utf-8",
    )
    code, out, err = run("--database", database, "-f", str(script))
    assert code == 0
    assert err == (
        "INSERT: 2 rows inserted\nMERGE: 2 rows affected (0 updated, 1 deleted, 1 inserted)\nINSERT: 1 row inserted\n"
        "EXECUTE: 3 rows affected\nDELETE: 1 row affected\n" + err[err.index("OPTIMIZE") :]
    )
    lines = out.splitlines()
    assert lines[:12] == [
        *("+----+------+", "| id | v    |", "+----+------+", "|  2 | NULL |", "|  9 | new  |", "| 10 | x    |"),
        *("+----+------+", "+-----+", "| two |", "+-----+", "|   2 |", "+-----+"),
    ]
    assert lines[12] == "== Physical Plan =="

    dml = "DELETE FROM t WHERE id = 10; SELECT count(*) AS n FROM t; UPDATE t SET v = 'u'; SHOW TABLES"
    code, out, err = run("--database", database, "-S", "--output", "json", "-e", dml)
    assert (code, err) == (0, "")
    assert [list(json.loads(line)) for line in out.splitlines()] == [["n"], ["namespace", "tableName", "isTemporary"]]


def test_streams(run: Run, database: str) -> None:
    setup = """CREATE TABLE src (id INT, v STRING); ALTER TABLE src SET PROPERTIES ('change_tracking' = 'true');
        CREATE STREAM st ON TABLE src; INSERT INTO src VALUES (1, 'a'); CREATE TABLE copy (id INT, v STRING)"""
    assert run("--database", database, "-e", setup) == (0, "", "INSERT: 1 row inserted\n")
    code, out, err = run("--output", "tsv", "-e", "SELECT __change_type, id, v FROM st", "-e", "SHOW STREAMS")
    assert (code, err) == (0, "")
    assert out.startswith("__change_type\tid\tv\nINSERT\t1\ta\nname\tschema_name\t")
    merge = """MERGE INTO copy USING st ON copy.id = st.id
        WHEN MATCHED AND st.__change_type = 'DELETE' THEN DELETE
        WHEN NOT MATCHED AND st.__change_type = 'INSERT' THEN INSERT (id, v) VALUES (st.id, st.v)"""
    code, out, err = run("--output", "json", "-e", merge, "-e", "SELECT count(*) AS left FROM st; SELECT * FROM copy")
    assert (code, out) == (0, '{"left": 0}\n{"id": 1, "v": "a"}\n')
    assert err == "MERGE: 1 row into copy (0 updated, 0 deleted, 1 inserted); st 2 → 3\n"


def test_what_refreshes_did(run: Run, database: str) -> None:
    """The hidden stream and the table that stores the rows are not named."""
    setup = """CREATE TABLE src (id INT); ALTER TABLE src SET PROPERTIES ('change_tracking' = 'true'); INSERT INTO src VALUES (0), (1);
        CREATE DYNAMIC TABLE d AS SELECT id FROM src; INSERT INTO src VALUES (2); REFRESH DYNAMIC TABLE d;
        REFRESH DYNAMIC TABLE d; VERIFY DYNAMIC TABLE d; ALTER DYNAMIC TABLE d SET TARGET_LAG = '1 hour'; DROP DYNAMIC TABLE d"""
    code, out, err = run("--database", database, "--output", "json", "-e", setup)
    assert code == 0, err
    assert err.splitlines()[1:] == [
        "CREATE: 2 rows into d",
        "INSERT: 1 row inserted",
        "REFRESH: 1 row into d",
        "REFRESH: nothing to do, the sources have not changed",
        "d is refreshed by a process that runs streamql scheduler, or by streamql refresh --due from cron",
    ]
    assert json.loads(out)["verdict"] == "EQUAL"


def test_what_consumptions_did(run: Run, database: str, spark: SparkSession) -> None:
    setup = """CREATE TABLE src (id INT); ALTER TABLE src SET PROPERTIES ('change_tracking' = 'true');
        INSERT INTO src VALUES (0); CREATE STREAM st ON TABLE src; CREATE STREAM all_of_it ON TABLE src SHOW_INITIAL_ROWS = TRUE;
        CREATE TABLE a (id INT); CREATE TABLE b (id INT)"""
    assert run("-S", "--database", database, "-e", setup) == (0, "", "")

    def said(*statements: str) -> list[str]:
        code, _, err = run("-e", "; ".join(statements))
        assert code == 0, err
        return err.splitlines()

    more, into_a, into_b = ("INSERT INTO src VALUES (1), (2)", *(f"INSERT INTO {t} SELECT id FROM st" for t in "ab"))
    assert said(into_a, more, into_a) == [
        "INSERT: 0 rows inserted; st stays at 3",
        "INSERT: 2 rows inserted",
        "INSERT: 2 rows into a; st 3 → 4",
    ]
    assert said(more, "FROM st INSERT INTO a SELECT id INSERT INTO b SELECT id WHERE id > 1") == [
        "INSERT: 2 rows inserted",
        "INSERT: 2 rows into a, 1 row into b; st 4 → 5",
    ]
    assert said("CREATE TABLE c AS SELECT id FROM all_of_it") == [
        "CREATE: 5 rows into c; all_of_it 3 → 5 with its initial rows"
    ]
    assert said(more, "BEGIN TRANSACTION", into_a, into_b, "COMMIT")[1:] == [
        "INSERT: 2 rows into a; st 5 → 6 at COMMIT",
        "INSERT: 2 rows into b; st 5 → 6 at COMMIT",
        "COMMIT: st 5 → 6",
    ]
    assert said(more, f"BEGIN {into_a}; INSERT INTO b SELECT id FROM all_of_it; END")[1:] == [
        "INSERT: 2 rows into a; st 6 → 7",
        "INSERT: 4 rows into b; all_of_it 5 → 7",
    ]
    assert said(more, "SELECT id FROM st WITH CONSUME")[1:] == ["2 rows; st 7 → 8"]
    assert run("-S", "-e", f"{more}; {into_a}") == (0, "", "")
    assert said(more, f"EXECUTE IMMEDIATE '{into_a}'")[1:] == ["INSERT: 2 rows into a; st 9 → 10"]
    half = ("INSERT INTO src VALUES (3)", "BEGIN TRANSACTION", into_a, "INSERT INTO b SELECT raise_error('no') FROM st")
    assert run("-S", "-e", "; ".join(half))[0] == 1
    assert said("BEGIN TRANSACTION", into_a, into_b, "COMMIT")[1:] == [
        "INSERT: skipped, since an earlier run of the transaction did it",
        "INSERT: 1 row into b; st 10 → 11 at COMMIT",
        "COMMIT: st 10 → 11",
    ]
    plain = "CREATE TABLE p (id INT) USING parquet; SET spark.streamql.nonDeltaTargets = at_least_once; INSERT INTO src VALUES (4)"
    try:
        assert said(plain, "INSERT INTO p SELECT id FROM st")[1:] == ["INSERT: rows into p; st 11 → 12"]
    finally:
        spark.conf.unset("spark.streamql.nonDeltaTargets")


def test_a_server_s_session_tells_its_client(run: Run, database: str, spark: SparkSession) -> None:
    """By settings that it leaves only if the client asks for them."""
    setup = """CREATE TABLE src (id INT); ALTER TABLE src SET PROPERTIES ('change_tracking' = 'true');
        CREATE STREAM st ON TABLE src; CREATE TABLE a (id INT); INSERT INTO src VALUES (0)"""
    assert run("-S", "--database", database, "-e", setup) == (0, "", "")
    own = spark.newSession()
    own.sql(f"USE {database}")
    own.sql("INSERT INTO a SELECT id FROM st")
    assert own.conf.get(EFFECTS, "") == ""
    own.conf.set(WANTS_EFFECTS, "true")
    own.sql("INSERT INTO src VALUES (1)")
    own.sql("BEGIN TRANSACTION")
    own.sql("INSERT INTO a SELECT id FROM st")
    own.sql("COMMIT")
    written = (Write("INSERT", f"spark_catalog.{database}.a", 1),)
    move = (Move(f"{database}.st", 3, 4),)
    assert from_json(own.conf.get(EFFECTS) or "") == [Effect(move, written, is_open=True), Effect(move)]


def test_warnings(run: Run, database: str) -> None:
    setup = """CREATE TABLE src (id INT, v INT); ALTER TABLE src SET PROPERTIES ('change_tracking' = 'true');
        CREATE TABLE w (id INT, v INT); CREATE STREAM st ON TABLE src; INSERT INTO src VALUES (1, 2)"""
    merge = """MERGE INTO w USING st ON w.id = st.id
        WHEN NOT MATCHED AND st.__change_type = 'INSERT' THEN INSERT (id, v) VALUES (st.id, w.v)"""
    assert run("-S", "--database", database, "-e", setup) == (0, "", "")
    code, out, err = run("-e", merge)
    assert (code, out) == (0, ""), err
    assert err.startswith("warning: ")
    assert run("-S", "-e", merge) == (0, "", "")


BROKEN = """SELECT 1 AS one;

SELECT
  nope;
SELECT
  1 / 0;
DROP STREAM
  nosuch;
SELEC 1;
SELECT java_method('java.lang.Integer', 'parseInt', 'zz');
SELECT 'open"""


def test_errors(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "broken.sql"
    script.write_text(BROKEN.rsplit(";", 1)[0], encoding="utf-8")
    code, out, err = run("--output", "json", "-f", str(script))
    assert (code, out) == (1, '{"one": 1}\n')
    assert err.startswith(f"error in statement 2, line 4 of {script}: [UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] ")
    assert err.endswith("    4 |   nope\n      |   ^\nSQLSTATE: 42703\n4 statements after it were not run\n")
    assert run("-e", "SELECT nope; SELECT 1")[2].endswith("\n1 statement after it was not run\n")
    assert "not run" not in run("-e", "SELECT 1; SELECT nope")[2]
    for query, at in (
        ("SELECT 1 AS a,\n    nope", "5 |     nope\n      |     ^\n"),
        ("SELECT 1 FORM t WHERE", "WHERE\n      |                  ^\n"),
    ):
        _, _, err = run("-e", f"-- a view\nCREATE MATERIALIZED VIEW v\n  COMMENT 'ü'\nAS {query}")
        assert at in err, err


def test_all_errors(run: Run) -> None:
    code, out, err = run("--continue-on-error", "--output", "csv", "-e", BROKEN + " ;", "-e", "SELECT 2 AS two")
    assert (code, out) == (1, "one\n1\ntwo\n2\n")
    heads = [line for line in err.splitlines() if line.startswith("error")]
    assert [head.split(": [")[0].split(": Num")[0] for head in heads] == [
        f"error in statement {n}, line {line}" for n, line in ((2, 4), (3, 6), (4, 8), (5, 9), (6, 10), (7, 11))
    ]
    assert heads[1].endswith("to bypass this error.")
    assert "[STREAM_NOT_FOUND] there is no stream nosuch" in heads[2]
    assert "[PARSE_SYNTAX_ERROR]" in heads[3]
    assert 'NumberFormatException: For input string: "zz"' in heads[4]
    assert "the string that starts here is never closed" in heads[5]
    summary = "6 of 8 statements failed: 2 (line 3), 3 (line 5), 4 (line 7), 5 (line 9), 6 (line 10), 7 (line 11)"
    assert err.splitlines()[-1] == summary
    assert "\tat " not in err
    assert "Traceback" not in err


def test_no_such_database(run: Run) -> None:
    code, out, err = run("--database", "no such", "-e", "SELECT 1")
    assert (code, out) == (1, "")
    assert err.startswith("error: [SCHEMA_NOT_FOUND] The schema `spark_catalog`.`no such` cannot be found.")


def test_settings_for_small_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """They are those of the embedded session."""
    assert main(["conf"]) == 0
    plain = capsys.readouterr().out.splitlines()
    assert main(["conf", "--small"]) == 0
    added = dict(line.split() for line in capsys.readouterr().out.splitlines() if line not in plain)
    assert list(added) == ["spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"]
    assert added.items() <= embedded_conf(tmp_path, {}).items()


def test_tables_are_cut(run: Run) -> None:
    code, out, err = run("--max-rows", "2", "-e", "SELECT * FROM range(5)", "-e", "SELECT * FROM range(2)")
    assert (code, len(out.splitlines())) == (0, 12)
    assert err == "there are more rows than the 2 shown; --max-rows 0 shows all, --output csv streams\n"
    code, out, err = run("--max-rows", "0", "-e", "SELECT * FROM range(1500)")
    assert (len(out.splitlines()), err) == (1504, "")
    code, out, err = run(
        "--max-rows", "2", "--output", "markdown", "-e", "SELECT id FROM range(0, 3, 1, 3) ORDER BY id"
    )
    assert out == "| id |\n| ---: |\n| 0 |\n| 1 |\n| 2 |\n"


def test_the_reader_goes_away(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    assert run("--output", "csv", "-e", "SELECT * FROM range(10)")[0] == 141


def test_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for argv in ((), ("-f", "-")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("SELECT 'ä' AS a;\n".encode())))
        assert run("--output", "csv", *argv) == (0, "a\nä\n", "")
