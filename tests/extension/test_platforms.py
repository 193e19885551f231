"""Platforms: which Spark and Delta Lake are used, and what is refused by name before any class of it is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamql.cli.main import main
from streamql.errors import StreamqlError
from streamql.extension import platforms
from streamql.extension.host import spark_defaults
from streamql.extension.platforms import find, given_delta
from streamql.extension.settings import conf_lines
from streamql.shared import text_of

ROOT = Path(__file__).resolve().parents[2]


def installed(directory: Path, name: str, version: str) -> None:
    """Makes a Python package that has nothing but a version."""
    metadata = directory / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_the_table_names_files_and_dependencies_that_exist() -> None:
    all_platforms = platforms.platforms()
    shims = {path.stem for path in (ROOT / "streamql" / "extension" / "scala" / "shims").glob("*.scala")}
    rows = json.loads(text_of("platforms.json")).values()
    assert {name for row in rows for part in (row, *row["delta"].values()) for name in part["shims"]} | {
        "Shim"
    } == shims
    oldest, newest = all_platforms[0], all_platforms[-1]
    major, minor = newest.spark.split(".")
    assert f'"pyspark>={oldest.oldest},<{major}.{int(minor) + 1}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("spark", "delta", "name"),
    [
        ("4.0.1", None, "spark4.0-delta4.4"),
        ("4.0.2", "4.0.1", "spark4.0-delta4.0"),
        ("4.1.4", "4.4.1", "spark4.1-delta4.4"),
        ("4.1.0", "4.2.0", "spark4.1-delta4.2"),
        ("4.2.1", None, "spark4.2-delta4.4"),
    ],
)
def test_versions_of_a_line_are_one_platform(spark: str, delta: str | None, name: str) -> None:
    assert find(spark, delta).name == name


@pytest.mark.parametrize(
    ("spark", "delta", "install"),
    [
        ("4.0.0", None, "pyspark==4.2.0"),
        ("4.3.0", "4.4.0", "pyspark==4.2.0"),
        ("3.5.9", "3.3.0", "pyspark==4.2.0"),
        ("4.20.0", None, "pyspark==4.2.0"),
        ("4.2.0", "4.2.0", "--no-deps delta-spark==4.4.0"),
        ("4.1.2", "4.0.0", "--no-deps delta-spark==4.4.0"),
    ],
)
def test_other_pairs_are_refused(spark: str, delta: str | None, install: str) -> None:
    with pytest.raises(StreamqlError, match=f"this is Spark {spark} with Delta Lake {delta or 'none'}") as error:
        find(spark, delta)
    assert error.value.code == "SPARK_NOT_SUPPORTED"
    assert "streamql runs on Spark 4.0 with Delta Lake 4.4 or 4.0, Spark 4.1 with" in error.value.message
    assert error.value.hint.startswith(f"pip install {install}; or")


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"spark.jars.packages": "a:b:1,io.delta:delta-spark_2.13:4.0.0"}, ("spark.jars.packages", "4.0.0")),
        ({"spark.jars": "/x/delta-spark_4.1_2.13-4.2.0.jar,/y.jar"}, ("spark.jars", "4.2.0")),
        (
            {"spark.driver.extraClassPath": "/a.jar:/delta-spark_4.2_2.13-4.4.0.jar"},
            ("spark.driver.extraClassPath", "4.4.0"),
        ),
        ({"spark.jars": "/absent/delta-spark.jar"}, None),
        ({"spark.jars": "/delta-storage-4.4.0.jar", "spark.app.name": "delta-spark_2.13-4.0.0.jar"}, None),
    ],
)
def test_a_delta_lake_that_settings_name(settings: dict[str, str], found: tuple[str, str] | None) -> None:
    assert given_delta(settings) == found


def test_spark_defaults_are_kept_and_name_a_delta_lake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (
        "# spark.jars /no.jar",
        "spark.jars\t/a.jar,/delta-spark_4.2_2.13-4.4.0.jar",
        " spark.sql.extensions=a.B",
        "spark.x",
        "spark.sql.sources.default parquet",
        "",
    )
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert main(["conf"]) == 0
    shown = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert shown["spark.sql.extensions"] == "a.B,io.delta.sql.DeltaSparkSessionExtension,streamql.Extensions"
    jars = [Path(jar).name for jar in shown["spark.jars"].split(",")]
    assert jars[:2] == ["a.jar", "delta-spark_4.2_2.13-4.4.0.jar"]
    assert [jar for jar in jars if "delta" in jar][1:] == [jars[-1]]
    assert jars[-1].startswith("streamql-extension-spark4.2-delta4.4")
    assert shown["spark.sql.sources.default"] == "delta"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "absent"))
    assert spark_defaults() == {}


def test_a_java_that_spark_cannot_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    platforms.check_java(find("4.2.0", None))
    with pytest.raises(StreamqlError, match=r"is Java 25; Spark 4\.0 runs on Java 17 or 21") as error:
        platforms.check_java(find("4.0.2", None))
    assert error.value.code == "JAVA_NOT_FOUND"


@pytest.mark.parametrize("other", ["package", "home", "delta"])
def test_another_version(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused wherever it is found, and before anything is made."""
    spark, delta = ("4.2.0", "4.1.4") if other == "delta" else ("3.5.4", "4.4.0")
    home = tmp_path / "home"
    (home / "jars").mkdir(parents=True)
    if other != "package":
        (home / "jars" / f"spark-core_2.13-{spark}.jar").write_text("")
    monkeypatch.setenv("SPARK_HOME", str(home))
    installed(tmp_path, "pyspark", spark)
    installed(tmp_path, "delta-spark", delta)
    monkeypatch.syspath_prepend(str(tmp_path))
    said = f"this is Spark {spark} with Delta Lake {delta}; streamql runs on Spark 4.0 with"
    with pytest.raises(StreamqlError, match=said) as error:
        conf_lines()
    assert error.value.code == "SPARK_NOT_SUPPORTED"
    assert main(["--data", str(tmp_path / "lake"), "-e", "SELECT 1"]) == 1
    assert main(["--version"]) == 0
    assert f"not supported: {said}" in capsys.readouterr().out
    assert not (tmp_path / "lake").exists()
