"""Sessions that others made: with the extension in their settings, without it, and on a cluster."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from streamql.extension.host import spark_home
from streamql.extension.settings import conf_lines
from tests.frontends.support import environment, finished, running, said
from tests.small import SHORT_LIVED

pytestmark = pytest.mark.slow

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
spark.stop()
"""

BARE = """
import streamql
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
try:
    streamql.sql("SHOW STREAMS", spark)
except streamql.StreamqlError as e:
    print(e.code)
    print(e.hint)
"""


def lines_of(extra: dict[str, str]) -> str:
    """A spark-defaults.conf, as `streamql conf` prints it, with settings of one's own."""
    return "".join(f"{key} {value}\n" for key, value in {**conf_lines(), **extra}.items())


def settings(directory: Path) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        **SHORT_LIVED,
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }


def test_a_session_without_the_extension(tmp_path: Path) -> None:
    done = finished([sys.executable, "-W", "ignore", "-c", BARE], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[0] == "EXTENSION_NOT_INSTALLED"
    assert {f"  {key} {value}" for key, value in conf_lines().items()} <= set(printed)


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
    (tmp_path / "job.py").write_text(JOB)
    cluster = {
        "spark.master": f"spark://127.0.0.1:{port}",
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
    }
    conf = tmp_path / "spark.conf"
    conf.write_text(lines_of(settings(tmp_path) | cluster))
    with running(master, tmp_path / "master.log") as m, running(worker, tmp_path / "worker.log") as w:
        said(m, tmp_path / "master.log", "Registering worker")
        said(w, tmp_path / "worker.log", "Successfully registered")
        submit = [str(spark_home() / "bin" / "spark-submit"), "--properties-file", str(conf), str(tmp_path / "job.py")]
        done = finished(submit, cwd=tmp_path)
    # PySpark prints to stdout what it thinks of the version of pandas that is there, if one is.
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["990 0 False", "1"]), done.stderr[-4000:]
    assert list((tmp_path / "work").glob("app-*/0/stderr")), "no executor ran"
    assert environment()["SPARK_HOME"] == str(spark_home())
