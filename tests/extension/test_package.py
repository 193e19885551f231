"""The sdist and the wheel: what they hold, and that an installation of either runs without compiling.

They are built in the environment of the tests (`--no-build-isolation`), as an index is not at hand everywhere. A long run also installs
both into environments of their own, with what pip finds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamql.extension import build
from streamql.extension.platforms import current, platforms
from tests.sample import IS_LONG
from tests.small import SHORT_LIVED_ARGUMENTS

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = platforms() if IS_LONG else (current(),)
"""Those whose jars are built: another Spark than the installed one is fetched first, which is 430 MB."""
JARS = [f"streamql/extension/{build.jar_name(platform)}" for platform in PLATFORMS]
JAR = f"streamql/extension/{build.jar_name(current())}"
NEEDED = (
    "streamql/py.typed",
    "streamql/pages/create-stream.md",
    "streamql/cli/commands/completion.bash",
    "streamql/cli/commands/completion.zsh",
    "streamql/extension/scala/entry/Extensions.scala",
    "streamql/extension/metastore.sql",
    "streamql/extension/log4j2.properties",
    "streamql/shared/constants.json",
    "streamql/shared/errors.json",
    "streamql/shared/prefilter.txt",
    "streamql/features/dynamic/errors.json",
    "streamql/features/dynamic/prefilter.txt",
    "streamql/features/kafka/prefilter.txt",
    "streamql/features/tablestore/functions.json",
)
STATEMENTS = """
CREATE TABLE t (id INT); ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true'); CREATE STREAM s ON TABLE t;
INSERT INTO t VALUES (1), (2); CREATE TABLE r AS SELECT id FROM s; SELECT count(*) AS left FROM s"""


@dataclass(frozen=True)
class Built:
    """The two files, and what the builds said."""

    sdist: Path
    wheel: Path
    said_by_sdist: str
    said_by_wheel: str


def _run(command: list[str], directory: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist of the checkout, and the wheel that pip makes of it, as `python -m build` does."""
    scratch = tmp_path_factory.mktemp("package")
    source, dist = scratch / "source", scratch / "dist"
    ignored = shutil.ignore_patterns("__pycache__", "*.jar")
    shutil.copytree(ROOT / "streamql", source / "streamql", ignore=ignored)
    shutil.copytree(ROOT / "docs" / "sql", source / "docs" / "sql")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md"):
        shutil.copy(ROOT / name, source)
    code = f"from setuptools import build_meta; print(build_meta.build_sdist({str(dist)!r}))"
    environment = {**os.environ, "STREAMQL_PLATFORMS": ",".join(p.name for p in PLATFORMS)}
    said_by_sdist = _run([sys.executable, "-c", code], source, environment)
    (sdist,) = dist.iterdir()
    assert not [p for p in source.rglob("*") if p.suffix == ".jar" or p.name == "build"]
    wheels = scratch / "wheels"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-v",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(wheels),
        str(sdist),
    ]
    said_by_wheel = _run(pip, scratch, environment)
    (wheel,) = wheels.iterdir()
    return Built(sdist, wheel, said_by_sdist, said_by_wheel)


@pytest.mark.spark
def test_both_hold_what_a_session_needs(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        in_wheel = set(archive.namelist())
        metadata = archive.read(next(n for n in in_wheel if n.endswith(".dist-info/METADATA"))).decode()
    with tarfile.open(built.sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    for held in (in_wheel, in_sdist):
        assert {*NEEDED, *JARS} <= held
        assert not [name for name in held if name.startswith(("tests/", "bench/", "examples/")) or ".pyc" in name]
    assert {"pyproject.toml", "setup.py", "README.md"} <= in_sdist
    assert re.search(r"^Requires-Python: >=3\.10$", metadata, re.MULTILINE)
    assert "Classifier: Typing :: Typed" in metadata


@pytest.mark.spark
def test_only_the_sdist_compiles(built: Built) -> None:
    assert "compiling the Spark extension" in built.said_by_sdist
    assert "compiling the Spark extension" not in built.said_by_wheel


@pytest.mark.spark
def test_an_unpacked_wheel_uses_its_own_jar_and_pages(built: Built, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        "import streamql; from streamql.extension.build import extension_jar; from streamql.cli.shell import topics; "
        "from streamql.extension.platforms import current; "
        "print(streamql.__file__, extension_jar(current()), topics.find('create stream').splitlines()[-1], sep='\\n')"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "STREAMQL_CACHE": str(tmp_path / "empty")}
    package = tmp_path / "site" / "streamql"
    printed = _run([sys.executable, "-c", code], tmp_path, environment)
    page = package / "pages" / "create-stream.md"
    assert printed.splitlines() == [str(package / "__init__.py"), str(tmp_path / "site" / JAR), f"more: {page}"]
    with zipfile.ZipFile(tmp_path / "site" / JAR) as jar:
        names = set(jar.namelist())
    assert "streamql/Extensions.class" in names
    assert {n.replace("/shared/", "/") for n in NEEDED if "/shared/" in n} <= names


@pytest.mark.spark
@pytest.mark.skipif(not IS_LONG, reason="installs PySpark into two new environments: minutes, and an index")
@pytest.mark.parametrize("artifact", ["wheel", "sdist"])
def test_an_installation_runs_without_a_compiler(built: Built, artifact: str, tmp_path: Path) -> None:
    """The cache of jars is a new one, and PATH has nothing but what Spark's launcher calls."""
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in ("java", "bash", "env", "dirname", "basename", "ps", "uname"):
        if found := shutil.which(program):
            (programs / program).symlink_to(Path(found).resolve() if program == "java" else found)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"STREAMQL_CACHE": str(tmp_path / "cache"), "PATH": str(programs)}
    python = tmp_path / "venv" / "bin" / "python"
    _run([str(python), "-m", "pip", "install", "--quiet", str(getattr(built, artifact))], tmp_path, environment)
    command = [
        str(python),
        "-m",
        "streamql",
        "--data",
        "d",
        *SHORT_LIVED_ARGUMENTS,
        "--output",
        "csv",
        "-e",
        STATEMENTS,
    ]
    said = _run(command, tmp_path, environment)
    assert said.startswith("left\n0\n")
    assert "compiling" not in said
    assert not (tmp_path / "cache" / "extension").exists()
    assert list((tmp_path / "cache" / "jars").glob("delta-spark*.jar"))
