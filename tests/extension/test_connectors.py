"""Connectors: the jars and settings that one switch adds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
from streamql.extension import connectors, settings
from streamql.extension.connectors import Connector, connector_jars, parse_connectors
from streamql.extension.embedded import embedded_conf
from streamql.extension.jars import METASTORE
from streamql.extension.platforms import current
from streamql.sessions import configure


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two connectors of one jar, which is in the cache: the embedded session's own."""
    made = {name: Connector(name, "for a test", lambda _: METASTORE) for name in ("toy", "other")}
    monkeypatch.setattr(connectors, "CONNECTORS", made)


def test_an_unknown_connector() -> None:
    with pytest.raises(StreamqlError, match="no such connector: floppy") as error:
        settings.conf_lines("floppy")
    assert error.value.code == "INVALID_ARGUMENT"


@pytest.mark.usefixtures("toys")
def test_names() -> None:
    assert [c.name for c in parse_connectors(" Other, toy,,toy ")] == ["other", "toy"]
    assert parse_connectors(" ") == ()
    with pytest.raises(StreamqlError, match="floppy") as error:
        parse_connectors("toy,floppy")
    assert error.value.hint == "the connectors are toy, other"


@pytest.mark.usefixtures("toys")
def test_jars_and_settings(tmp_path: Path) -> None:
    [jar] = connector_jars("toy,other", current())
    lines = settings.conf_lines("toy, other")
    assert lines["spark.streamql.connectors"] == "toy,other"
    assert lines["spark.jars"].split(",")[-1] == str(jar)
    assert lines["spark.driver.extraClassPath"].split(os.pathsep)[-1] == str(jar)
    assert "spark.streamql.connectors" not in settings.conf_lines()
    builder = configure(SparkSession.Builder().config("spark.streamql.connectors", "toy"))
    assert str(jar) in builder._options["spark.jars"]
    conf = embedded_conf(tmp_path, {"spark.streamql.connectors": "toy"})
    assert conf["spark.driver.extraClassPath"].split(os.pathsep).count(str(jar)) == 1


def test_s3_has_modules_of_the_sdk_instead_of_its_bundle() -> None:
    jars = connector_jars("s3", current())
    assert not [jar.name for jar in jars if jar.name.startswith("bundle")]
    assert sum(jar.stat().st_size for jar in jars) < 20_000_000


def test_settings_of_a_connector_go_behind_those_of_the_user(tmp_path: Path) -> None:
    key = "spark.hadoop.fs.s3.impl"
    assert settings.conf_lines("s3")[key].endswith("S3AFileSystem")
    assert key not in settings.conf_lines()
    given = {"spark.streamql.connectors": "s3", key: "com.example.FileSystem"}
    assert embedded_conf(tmp_path, given)[key] == "com.example.FileSystem"
