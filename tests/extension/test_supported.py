"""Another Spark or Delta Lake than the supported one is refused by name, before any class of it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamql.cli.main import main
from streamql.errors import StreamqlError
from streamql.extension import supported
from streamql.extension.jars import DELTA
from streamql.extension.settings import conf_lines

ROOT = Path(__file__).resolve().parents[2]


def test_the_pins_are_those_that_are_checked() -> None:
    pins = (ROOT / "pyproject.toml").read_text()
    assert f'"pyspark=={supported.SPARK}"' in pins
    assert f'"delta-spark=={supported.DELTA}"' in pins
    assert {coordinate.rpartition(":")[2] for coordinate in DELTA} == {supported.DELTA}
    assert supported.unsupported() is None
    assert supported.is_supported("4.2.7", "4.2.0")
    assert not supported.is_supported("4.20.0", "4.2.0")


@pytest.mark.parametrize("other", ["package", "home", "delta"])
def test_another_version(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if other == "home":
        (tmp_path / "jars").mkdir()
        (tmp_path / "jars" / "spark-core_2.13-4.1.4.jar").write_text("")
        monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    else:
        name = "pyspark" if other == "package" else "delta-spark"
        metadata = tmp_path / f"{name.replace('-', '_')}-4.1.4.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 4.1.4\n")
        monkeypatch.syspath_prepend(str(tmp_path))
    found = (
        "this is Spark 4.2.0 with Delta Lake 4.1.4" if other == "delta" else "this is Spark 4.1.4 with Delta Lake 4.4.0"
    )
    said = f"{found}, and this streamql needs Spark 4.2.0 with Delta Lake 4.4.0"
    with pytest.raises(StreamqlError, match=said) as error:
        conf_lines()
    assert error.value.code == "SPARK_NOT_SUPPORTED"
    assert error.value.hint.startswith("pip install pyspark==4.2.0 delta-spark==4.4.0; or")
    assert main(["--data", str(tmp_path / "lake"), "-e", "SELECT 1"]) == 1
    assert main(["--version"]) == 0
    assert f"not supported: {said}" in capsys.readouterr().out
    assert not (tmp_path / "lake").exists()
