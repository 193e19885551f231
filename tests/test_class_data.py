"""Class data archives: used where they fit, left aside where they do not, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamql.cli.commands.prepare import NO_ARCHIVE
from streamql.extension import class_data
from streamql.extension.embedded import embedded_conf
from streamql.extension.host import java, spark_home
from streamql.extension.jvm import classpath_of, command

PREPARE_SECONDS_MAX = 600


@pytest.fixture
def conf(tmp_path: Path) -> dict[str, str]:
    return embedded_conf(tmp_path, {})


def archive_option(line: list[str]) -> str | None:
    return next((option for option in line if "SharedArchiveFile" in option), None)


def start(*options: str) -> subprocess.CompletedProcess[str]:
    """A JVM that must use its archive or end."""
    line = [str(java()), "-Xshare:on", "-Xlog:cds=warning", *options, "-version"]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_what_prepare_made_is_used_by_each_start(conf: dict[str, str]) -> None:
    prepare = [sys.executable, "-m", "streamql", "prepare"]  # `make setup` has done it
    done = subprocess.run(prepare, capture_output=True, text=True, timeout=PREPARE_SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()[-1]
    if said.startswith(NO_ARCHIVE):
        pytest.skip(said)
    assert said == "ready"
    option = archive_option(command(conf, spark_home()))
    assert option is not None
    assert start(option, "-cp", classpath_of(conf)).returncode == 0
    assert start(option, "-cp", os.pathsep.join([str(java()), classpath_of(conf)])).returncode != 0


def test_the_class_path_is_that_of_bin_spark_sql(conf: dict[str, str]) -> None:
    home = spark_home()
    line = [str(java()), "-cp", str(home / "jars" / "*"), "org.apache.spark.launcher.Main"]
    line += ["org.apache.spark.deploy.SparkSubmit", "--conf"]
    line += [f"spark.driver.extraClassPath={conf['spark.driver.extraClassPath']}", "--class", "a.B", "spark-internal"]
    environment = {k: v for k, v in os.environ.items() if k not in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")}
    said = subprocess.run(
        line,
        capture_output=True,
        text=True,
        check=True,
        env={**environment, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
    )
    theirs = said.stdout.split("\0")
    path = theirs[theirs.index("-cp") + 1]
    # Spark 4.0 also names a directory for Hive's command line, which PySpark does not have.
    assert path.replace(f"hive-jackson/*{os.pathsep}", "") == classpath_of(conf)


def test_other_jars_have_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMQL_CACHE", str(tmp_path / "cache"))
    jar = tmp_path / "jars" / "a.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"1")
    classpath = str(tmp_path / "jars" / "*")
    assert class_data.options(java(), classpath, ()) == []
    archive = class_data.path_of(java(), classpath)
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert archive_option(class_data.options(java(), classpath, ())) == f"-XX:SharedArchiveFile={archive}"
    assert class_data.options(java(), classpath, ("-XX:SharedArchiveFile=mine.jsa",)) == []
    jar.write_bytes(b"12")
    assert class_data.options(java(), classpath, ()) == []


def test_what_nobody_uses_goes(tmp_path: Path) -> None:
    now = time.time()
    ages = {"used.jsa": 29, "unused.jsa": 31, "unfinished.77": 1, "being_written.78": 0}
    for name, days in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (now, now - days * 24 * 3600))
    class_data.remove_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["being_written.78", "used.jsa"]
