"""The embedded session, seen from outside: each test starts processes as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import streamql
from streamql.errors import StreamqlError
from streamql.extension import jvm, metastore
from streamql.extension.build import extension_jar
from streamql.extension.embedded import embedded_conf
from streamql.extension.platforms import current
from streamql.extension.settings import joined
from streamql.sessions import configure, make_lake, session
from tests.lines import SPARK
from tests.small import SHORT_LIVED

CONF = {**SHORT_LIVED, "spark.master": "local[2]"}
SECONDS_MAX = 300
ROOT = Path(__file__).resolve().parent.parent

PRELUDE = f"""
    import sys
    from streamql.sessions import session
    def go(data):
        return session(data, {CONF!r})
    def say(*words):
        print(*words, flush=True)
    def hear():
        return sys.stdin.readline().strip()
"""


def start(script: str, directory: Path) -> subprocess.Popen[str]:
    """A Python process that runs `script` in `directory`."""
    code = textwrap.dedent(PRELUDE) + textwrap.dedent(script)
    pipe = subprocess.PIPE
    # The jar is compiled by this process, so that nothing is said about it in that one.
    extension_jar(current())
    environment = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_GATEWAY_PORT", "JAVA_TOOL_OPTIONS")}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=directory, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=pipe
    )


def run(script: str, directory: Path) -> tuple[str, str]:
    process = start(script, directory)
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, err
    return out, err


def listen(process: subprocess.Popen[str], expected: str) -> None:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line == expected, (line, process.stderr.read() if process.stderr and not line else "")


def tell(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(word + "\n")
    process.stdin.flush()


@pytest.mark.spark
def test_start_is_quiet_and_what_is_made_stays(tmp_path: Path) -> None:
    out, err = run(
        """
        spark = go("some data")
        spark.sql("CREATE DATABASE other")
        spark.sql("CREATE TABLE other.t (a INT)")
        spark.sql("INSERT INTO other.t VALUES (1)")
        spark.sql("CREATE VIEW v AS SELECT a + 1 AS b FROM other.t")
        assert go("some data") is spark
        try:
            spark.sql("SELECT CAST('x' AS INT)").collect()
        except Exception as e:
            say(type(e).__name__)
        """,
        tmp_path,
    )
    assert (out, err) == ("NumberFormatException\n", "")
    assert [p.name for p in tmp_path.iterdir()] == ["some data"]  # no derby.log, no spark-warehouse
    out, err = run('say(go("some data").sql("SELECT b FROM v").first().b)', tmp_path)
    assert (out, err) == ("2\n", "")


WRONG = ("spark.sql.shuffle.partitions", "abc")
"""PySpark 4.1 reads the setting to show the error of the setting, and does so for ever: with it, any session hangs."""


@pytest.mark.spark
def test_a_start_that_fails_and_a_session_that_ends_leave_nothing(tmp_path: Path) -> None:
    refused = [("spark.streamql.nosuch", "1"), *([WRONG] if SPARK != (4, 1) else [])]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    out, err = run(
        f"""
        import streamql
        from pathlib import Path
        from streamql.errors import StreamqlError
        conf = {{**{CONF!r}}}
        conf["spark.driver.extraJavaOptions"] += " -Djava.io.tmpdir={temporary}"
        for key, value in {refused!r}:
            try:
                session("data", conf | {{key: value}})
            except Exception as e:
                say(getattr(e, "code", type(e).__name__), Path("data").exists())
        spark = session("data", conf)
        spark.sql("CREATE TABLE t (a INT)")
        spark.sql("SET spark.sql.caseSensitive = true")
        streamql.sql("SHOW STREAMS").collect()
        spark.stop()
        for given in (None, spark):
            try:
                streamql.sql("SELECT 1", given)
            except StreamqlError as e:
                say(e.code, e.hint)
        """,
        tmp_path,
    )
    again = f"INVALID_ARGUMENT make it again by streamql.session('{tmp_path}/data')\n"
    of_spark = "IllegalArgumentException False\n" * (len(refused) - 1)
    assert (out, err) == (f"INVALID_ARGUMENT False\n{of_spark}{again}{again}", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "tmp"]  # no streamql-data
    deadline = time.monotonic() + 60
    while (left := list(temporary.iterdir())) and time.monotonic() < deadline:  # the JVM ends after its process
        time.sleep(0.1)
    assert left == []


@pytest.mark.spark
def test_two_processes_share_a_directory(tmp_path: Path) -> None:
    one = start(
        """
        spark = go("data")
        spark.sql("CREATE TABLE a (n INT)")
        say("made a"); hear()
        say(*sorted(r.tableName for r in spark.sql("SHOW TABLES").collect()))
        spark.sql("ALTER TABLE b RENAME TO c")
        say("renamed"); hear()
        """,
        tmp_path,
    )
    two = start(
        """
        spark = go("data")
        say("up"); hear()
        spark.sql("INSERT INTO a VALUES (7)")
        spark.sql("CREATE TABLE b (n INT)")
        spark.sql("CREATE DATABASE d"); spark.sql("CREATE TABLE d.t (n INT)"); spark.sql("DROP DATABASE d CASCADE")
        say("made b"); hear()
        say(*sorted(r.tableName for r in spark.sql("SHOW TABLES").collect()), spark.table("a").first().n)
        spark.sql("CREATE TABLE e AS SELECT 1 AS n")
        say("alone")
        """,
        tmp_path,
    )
    with one, two:
        listen(one, "made a")
        listen(two, "up")
        tell(two, "go on")
        listen(two, "made b")
        tell(one, "go on")
        listen(one, "a b")
        listen(one, "renamed")
        one.kill()  # as `kill -9`: the other goes on
        tell(two, "go on")
        listen(two, "a c 7")
        listen(two, "alone")


def test_another_directory_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StreamqlError) as error:
        session(tmp_path / "elsewhere")
    assert error.value.code == "INVALID_ARGUMENT"
    assert str(tmp_path / "elsewhere") in str(error.value)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(SPARK < (4, 2), reason="the options are those of Spark 4.2, which older ones can be started with")
def test_the_module_options_are_sparks_own(spark: SparkSession) -> None:
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    theirs = str(gateway.jvm.org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions()).split()
    assert [option for option in theirs if "incubator" not in option] == list(jvm.MODULE_OPTIONS)


@pytest.mark.spark
def test_java_that_was_started_ahead_is_taken_only_for_the_same_session(tmp_path: Path) -> None:
    out, err = run(
        """
        from streamql.extension import embedded
        loaded = sys.modules.pop("pyspark")
        embedded.start_ahead("one", {"spark.app.name": "first"}, is_brief=True)
        sys.modules["pyspark"] = loaded
        first = embedded._ahead[2].process
        spark = go("two")
        say(first.poll() is not None, spark.conf.get("spark.app.name"), embedded._ahead)
        say(spark._jvm.System.getenv("PYSPARK_PYTHON") == sys.executable)
        """,
        tmp_path,
    )
    assert (out, err) == ("True streamql None\nTrue\n", "")
    assert not (tmp_path / "one").exists()


def test_the_options_of_java_leave_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    brief = jvm.beside_statements([], "8192m", is_brief=True)
    assert brief[:3] == ["-XX:+UseSerialGC", "-Xms1024m", "-XX:TieredStopAtLevel=1"]
    lasting = jvm.beside_statements([], "8g", is_brief=False)
    assert "-XX:TieredStopAtLevel=1" not in lasting
    assert "-XX:+UseSerialGC" not in jvm.beside_statements(["-XX:+UseZGC"], "8g", is_brief=False)
    assert not [o for o in jvm.beside_statements([], "512m", is_brief=False) if o.startswith("-Xms")]
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+UseG1GC")
    assert "-XX:+UseSerialGC" not in jvm.beside_statements([], "8g", is_brief=False)
    monkeypatch.delenv("JDK_JAVA_OPTIONS")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert "-XX:+UseSerialGC" not in jvm.beside_statements([], "8g", is_brief=False)


def test_the_public_function_is_not_hidden_by_its_module() -> None:
    assert sys.modules["streamql.sessions"] is not streamql.session
    assert callable(streamql.session)


def test_configure_appends() -> None:
    builder = SparkSession.Builder().config("spark.sql.extensions", "acme.Extensions")
    builder.config("spark.sql.sources.default", "parquet").config("spark.driver.extraClassPath", "/acme.jar")
    options = configure(configure(builder))._options
    assert (
        options["spark.sql.extensions"] == "acme.Extensions,io.delta.sql.DeltaSparkSessionExtension,streamql.Extensions"
    )
    assert options["spark.sql.sources.default"] == "parquet"
    assert options["spark.driver.extraClassPath"].startswith("/acme.jar" + os.pathsep)


def test_configure_refuses_a_client_of_a_server() -> None:
    with pytest.raises(StreamqlError, match="INVALID_ARGUMENT"):
        configure(SparkSession.Builder().remote("sc://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("master", "is_one"), [("local[2]", True), ("local", True), ("local-cluster[2,1,1024]", False)]
)
def test_executors_in_other_processes_get_the_jars(tmp_path: Path, master: str, is_one: bool) -> None:
    conf = embedded_conf(tmp_path, {"spark.master": master, "spark.sql.warehouse.dir": "s3a://bucket/lake"})
    make_lake(tmp_path, conf)
    assert ("spark.jars" in conf) is not is_one
    for key in ("spark.driver.host", "spark.driver.bindAddress", "spark.hadoop.fs.file.impl"):
        assert (key in conf) is is_one, key
    assert metastore.default_location(metastore.file_of(tmp_path)) == "s3a://bucket/lake"


def test_a_warehouse_that_executors_do_not_see_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def warned(directory: str, **conf: str) -> str:
        caplog.clear()
        (tmp_path / directory).mkdir(exist_ok=True)
        make_lake(tmp_path / directory, embedded_conf(tmp_path / directory, conf))
        return "".join(record.getMessage() for record in caplog.records)

    cluster, shared = {"spark.master": "spark://m:7077"}, {"spark.sql.warehouse.dir": "s3a://bucket/lake"}
    assert warned("one") == ""
    warning = warned("two", **cluster)
    assert warning.startswith("executors of spark://m:7077 do not see files of this machine")
    assert f"the tables of new schemas are (file:{tmp_path}/two/warehouse)" in warning
    assert f"the tables of the schema default are (file:{tmp_path}/one/warehouse)" in warned("one", **cluster, **shared)
    assert warned("three", **cluster, **shared) == ""


@pytest.mark.parametrize(
    ("key", "given", "ours", "expected"),
    [
        ("spark.jars", None, "a,b", "a,b"),
        ("spark.jars", "c", "a,b", "c,a,b"),
        ("spark.jars", "b,c", "a,b", "c,a,b"),
        ("spark.app.name", "mine", "theirs", "mine"),
    ],
)
def test_joined(key: str, given: str | None, ours: str, expected: str) -> None:
    assert joined(key, given, ours) == expected
