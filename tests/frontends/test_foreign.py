"""Sessions that others made: with the extension in their settings, without it, and on a cluster."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.extension.build import build_jar
from streamql.extension.host import spark_home
from streamql.extension.jars import delta_jars
from streamql.extension.platforms import current
from streamql.extension.settings import EXTENSIONS, conf_lines
from tests.frontends.support import environment, finished, is_running, running, said
from tests.small import INTERPRETED, QUICK_JAVA, SHORT_LIVED

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launchers, master, worker and executor take no settings of a session."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)


JOB = """
import os
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for statement in (
    "CREATE TABLE t (id INT, v STRING)",
    "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')",
    "CREATE STREAM s ON TABLE t",
    "INSERT INTO t SELECT id, 'v' FROM range(0, 1000, 1, 4)",
    "CREATE TABLE x AS SELECT id, v FROM s",
    "DELETE FROM t WHERE id < 10",
    "MERGE INTO x USING s ON x.id = s.id WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE",
):
    spark.sql(statement)
print(spark.sql("SELECT count(*) AS n FROM x").first().n, spark.table("s").count(), "streamql" in sys.modules)
import streamql
print(len(streamql.sql("SHOW STREAMS", spark).collect()))
"""
"""It does not call spark.stop(), as many jobs do not: it ends all the same."""

BARE = """
import streamql
from pyspark.sql import SparkSession
from tests.small import SHORT_LIVED
spark = SparkSession.builder.config(map={"spark.ui.enabled": "false", **SHORT_LIVED}).getOrCreate()
try:
    streamql.sql("SHOW STREAMS", spark)
except streamql.StreamqlError as e:
    print(e.code)
    print(e.hint)
"""

CONFIGURED = """
import streamql
from pyspark.sql import SparkSession
from tests.small import INTERPRETED, SHORT_LIVED
small = {"spark.ui.enabled": "false", **SHORT_LIVED, **dict(INTERPRETED)}
spark = streamql.configure(SparkSession.builder.config(map=small)).getOrCreate()
for statement in (
    "CREATE TABLE t (id INT)",
    "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')",
    "CREATE STREAM s ON TABLE t",
    "INSERT INTO t VALUES (1), (2)",
):
    spark.sql(statement)
print(spark.table("s").count())
spark.stop()
try:
    streamql.session("lake")
except streamql.StreamqlError as e:
    print(e.code)
"""
"""A session of `configure`, and after its end an embedded one, for which the JVM lacks a jar."""

PLAIN_DELTA = """
import sys
from pyspark.sql import SparkSession
from tests.small import INTERPRETED, SHORT_LIVED
jars, *paths = sys.argv[1:]
plain = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.jars": jars,
}
small = {"spark.ui.enabled": "false", **SHORT_LIVED, **dict(INTERPRETED)}
spark = SparkSession.builder.config(map=small | plain).getOrCreate()
for path in paths:
    t = f"delta.`{path}`"
    for statement in (
        f"UPDATE {t} SET v = 'b' WHERE id = 1",
        f"DELETE FROM {t} WHERE id = 2",
        f"INSERT INTO {t} VALUES (7, 'n')",
        f"MERGE INTO {t} t USING (SELECT * FROM VALUES (3, 'm'), (8, 'x') AS s(id, v)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
        f"OPTIMIZE {t}",
        f"UPDATE {t} SET v = 'c' WHERE id = 1",
        f"REORG TABLE {t} APPLY (PURGE)",
        f"DELETE FROM {t} WHERE id = 7",
    ):
        spark.sql(statement)
print("written")
"""
"""A writer that has Delta Lake, and nothing of streamql."""

SUBMITTED = """
import streamql
from pyspark.sql import SparkSession
def code_of(work):
    try:
        work()
    except streamql.StreamqlError as e:
        return e
refused = code_of(lambda: streamql.configure(SparkSession.builder))
print(refused.code)
print(refused.hint)
spark = SparkSession.builder.getOrCreate()
print(code_of(lambda: streamql.sql("SHOW STREAMS", spark)))
"""
"""A job in whose JVM the extension's settings came without the jars."""

PROGRAM = """
import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import org.apache.spark.sql.SparkSession

object Program {
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder().getOrCreate()
    spark.sql("SHOW STREAMS").collect()
    val keeping = Thread.getAllStackTraces.keySet.asScala.filterNot(_.isDaemon).map(_.getName)
    ProcessHandle.current.children.forEach(_.destroyForcibly(): Unit)
    def hangs = Files.exists(Path.of("hangs"))
    val asking = new Thread(() => while (!hangs) try spark.sql("SHOW STREAMS").collect() catch { case NonFatal(_) => })
    asking.setDaemon(true)
    asking.start()
    while (!hangs) Thread.sleep(50)
    println(keeping.mkString(" "))
    println("main ends")
  }
}
"""
"""It prints the threads that keep its JVM from its end while a sidecar serves. It kills the sidecar, and ends while the next one starts."""

PYTHON = """#!/bin/sh
echo $$ >> sidecars
[ $(wc -l < sidecars) = 1 ] && exec {python} "$@"
sleep 600 & echo $! >> sidecars
touch hangs
wait
"""
"""A Python that starts once. The second time it hangs, and so does a process that it has started."""


def submitted(
    directory: Path, settings: dict[str, str], program: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """What `spark-submit` of a program prints, with a file of settings, as `streamql conf` prints them."""
    conf = script("spark.conf", "".join(f"{key} {value}\n" for key, value in settings.items()), directory)
    submit = [str(spark_home() / "bin" / "spark-submit"), "--properties-file", str(conf), *arguments, str(program)]
    return finished(submit, cwd=directory)


def script(name: str, text: str, directory: Path) -> Path:
    """A file that can be run."""
    path = directory / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def settings(directory: Path) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        **SHORT_LIVED,
        **dict(INTERPRETED),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }


def test_a_session_without_the_extension(tmp_path: Path) -> None:
    done = finished([sys.executable, "-W", "ignore", "-c", BARE], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[0] == "EXTENSION_NOT_INSTALLED"
    assert {f"  {key} {value}" for key, value in conf_lines().items()} <= set(printed)


def test_a_writer_with_delta_lake_alone(spark: SparkSession, tmp_path: Path) -> None:
    """It keeps the ids of rows, with deletion vectors and when it rewrites files, so a stream shows net changes of each row."""
    paths = [tmp_path / "vectors", tmp_path / "rewrites"]
    for path, vectors in zip(paths, ("true", "false"), strict=True):
        spark.sql(
            f"CREATE TABLE {path.name} (id INT, v STRING) USING delta LOCATION '{path}'"
            f" TBLPROPERTIES ('change_tracking' = 'true', 'delta.enableDeletionVectors' = '{vectors}')"
        )
        spark.sql(f"INSERT INTO {path.name} SELECT id, 'a' FROM range(1, 7, 1, 1)")
        spark.sql(f"CREATE STREAM of_{path.name} ON TABLE {path.name}")
    jars = ",".join(map(str, delta_jars(current())))
    done = finished([sys.executable, "-W", "ignore", "-c", PLAIN_DELTA, jars, *map(str, paths)], cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["written"]), done.stderr[-4000:]
    for path in paths:
        rows = spark.sql(f"SELECT id, __change_type, v FROM of_{path.name}").collect()
        assert sorted(map(tuple, rows)) == [
            (1, "UPDATE_AFTER", "c"),
            (1, "UPDATE_BEFORE", "a"),
            (2, "DELETE", "a"),
            (3, "UPDATE_AFTER", "m"),
            (3, "UPDATE_BEFORE", "a"),
            (8, "INSERT", "x"),
        ]
        spark.sql(f"DROP STREAM of_{path.name}")
        spark.sql(f"DROP TABLE {path.name}")


def test_a_configured_session_and_then_an_embedded_one(tmp_path: Path) -> None:
    done = finished([sys.executable, "-W", "ignore", "-c", CONFIGURED], cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == ["2", "EXTENSION_NOT_INSTALLED"]
    assert not (tmp_path / "lake").exists()


def test_a_submitted_job_whose_jvm_has_no_jars(tmp_path: Path) -> None:
    own = {"spark.pyspark.python": sys.executable, "spark.sql.extensions": ",".join(EXTENSIONS)}
    done = submitted(tmp_path, settings(tmp_path) | own, script("job.py", SUBMITTED, tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    printed = done.stdout.splitlines()
    at = printed.index("EXTENSION_NOT_INSTALLED")
    assert {f"  {key} {value}" for key, value in conf_lines().items()} <= set(printed[at:])
    assert "[EXTENSION_NOT_INSTALLED] the JVM of this Spark session has no streamql jars" in printed


def test_a_scala_program_that_ends_while_a_sidecar_starts(tmp_path: Path) -> None:
    """Neither the one that served and died, nor the one that does not come up, keeps the JVM from its end, or outlives it."""
    script("Program.scala", PROGRAM, tmp_path)
    build_jar(tmp_path / "program.jar", current(), (), tmp_path)
    python = script("python", PYTHON.format(python=sys.executable), tmp_path)
    begun = time.monotonic()
    lines = conf_lines() | settings(tmp_path) | {"spark.streamql.python": str(python)}
    done = submitted(tmp_path, lines, tmp_path / "program.jar", "--class", "Program")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-2:] == ["main", "main ends"]
    assert time.monotonic() - begun < 120  # the seconds that a sidecar has to start
    assert [pid for pid in (tmp_path / "sidecars").read_text().split() if is_running(int(pid))] == []


def test_a_cluster_whose_executors_are_other_processes(tmp_path: Path) -> None:
    """spark-submit of a job that does not import streamql, with master and worker of a standalone cluster."""
    spark_class = str(spark_home() / "bin" / "spark-class")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    master = [
        spark_class,
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        "0",
    ]
    worker = [
        spark_class,
        "org.apache.spark.deploy.worker.Worker",
        "--host",
        "127.0.0.1",
        "--webui-port",
        "0",
        "--cores",
        "2",
    ]
    worker += ["--memory", "1g", "--work-dir", str(tmp_path / "work"), f"spark://127.0.0.1:{port}"]
    cluster = {
        "spark.pyspark.python": sys.executable,
        "spark.master": f"spark://127.0.0.1:{port}",
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
    }
    with running(master, tmp_path / "master.log") as m, running(worker, tmp_path / "worker.log") as w:
        said(m, tmp_path / "master.log", "Registering worker")
        said(w, tmp_path / "worker.log", "Successfully registered")
        done = submitted(tmp_path, conf_lines() | settings(tmp_path) | cluster, script("job.py", JOB, tmp_path))
    # PySpark prints to stdout what it thinks of the version of pandas that is there, if one is.
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["990 0 False", "1"]), done.stderr[-4000:]
    assert list((tmp_path / "work").glob("app-*/0/stderr")), "no executor ran"
    assert environment()["SPARK_HOME"] == str(spark_home())
