"""The extension jar, the cache it is kept in, and Java."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from streamql.errors import StreamqlError
from streamql.extension import build, host, jars
from streamql.extension.platforms import current, platforms

ROOT = Path(__file__).resolve().parents[2]


def write_java(directory: Path, version: str) -> Path:
    """A stand-in for `java` that knows only its version."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StreamqlError, match="openjdk-17-jre-headless") as error:
        host.java()
    assert error.value.code == "JAVA_NOT_FOUND"


def test_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(StreamqlError, match="JAVA_HOME is") as error:
        host.java()
    assert error.value.code == "JAVA_NOT_FOUND"


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.2", 11)])
def test_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, major: int) -> None:
    write_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(StreamqlError, match=f"is Java {major}; Spark needs Java 17"):
        host.java()


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_good_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    program = write_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert host.java() == program


def test_the_release_file_saves_starting_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_java(tmp_path, "11")
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.4"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert host.java() == tmp_path / "bin" / "java"


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAMQL_CACHE", str(tmp_path / "own"))
    assert host.cache_dir() == tmp_path / "own"
    monkeypatch.delenv("STREAMQL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert host.cache_dir() == tmp_path / "streamql"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert host.cache_dir() == tmp_path / "home" / ".cache" / "streamql"


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STREAMQL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StreamqlError, match="STREAMQL_CACHE") as error, host.locked("any"):
        pass
    assert error.value.code == "JAR_BUILD_FAILED"


@pytest.mark.spark
def test_the_compilers_message_is_shown(tmp_path: Path) -> None:
    (tmp_path / "Wrong.scala").write_text("object Wrong { val n: Int = missing }\n")
    with pytest.raises(StreamqlError, match="not found: value missing") as error:
        build.build_jar(tmp_path / "out" / "x.jar", current(), [], tmp_path)
    assert error.value.code == "JAR_BUILD_FAILED"
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.spark
def test_a_jar_holds_classes_and_resources(tmp_path: Path) -> None:
    sources = tmp_path / "scala"
    (sources / "folder").mkdir(parents=True)
    (sources / "Left.scala").write_text("package p\nobject Left { val n: Int = Right.n }\n")
    (sources / "folder" / "Right.scala").write_text("package p\nobject Right { val n: Int = 1 }\n")
    (tmp_path / "prefilter.txt").write_text("STREAM")
    build.build_jar(tmp_path / "x.jar", current(), [], sources, tmp_path)
    with zipfile.ZipFile(tmp_path / "x.jar") as jar:
        assert {"p/Left.class", "p/Right.class"} <= set(jar.namelist())
        assert jar.read("streamql/prefilter.txt") == rb"\A(?:STREAM)"


def test_the_digest_follows_platform_sources_and_resources(tmp_path: Path) -> None:
    sources = tmp_path / "scala"
    sources.mkdir()
    (sources / "A.scala").write_text("class A")
    seen = {build.sources_digest(current(), sources, tmp_path)}
    (sources / "A.scala").write_text("class B")
    seen.add(build.sources_digest(current(), sources, tmp_path))
    (tmp_path / "prefilter.txt").write_text("x")
    seen.add(build.sources_digest(current(), sources, tmp_path))
    seen.update(build.sources_digest(platform, sources, tmp_path) for platform in platforms())
    assert len(seen) == 2 + len(platforms())


@pytest.mark.spark
def test_equal_sources_give_equal_jars(tmp_path: Path) -> None:
    sources = tmp_path / "scala"
    sources.mkdir()
    (sources / "Right.scala").write_text("package p\nobject Right { val n: Int = 1 }\n")
    (tmp_path / "prefilter.txt").write_text("STREAM")
    first, second = tmp_path / "first.jar", tmp_path / "second.jar"
    for jar in (first, second):
        build.build_jar(jar, current(), [], sources, tmp_path)
    assert first.read_bytes() == second.read_bytes()
    assert build.is_current(first, current(), sources, tmp_path)
    (sources / "Right.scala").write_text("package p\nobject Right { val n: Int = 2 }\n")
    assert not build.is_current(first, current(), sources, tmp_path)


def test_a_shipped_jar_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkout may hold a jar of an earlier state: the first session compiles the sources that lie there."""
    shipped = tmp_path / build.jar_name(current())
    with zipfile.ZipFile(shipped, "w") as archive:
        archive.writestr(build.DIGEST_ENTRY, build.sources_digest(current()))
    monkeypatch.setattr(build, "PACKAGED", tmp_path)
    assert build.extension_jar(current()) == shipped
    with zipfile.ZipFile(shipped, "w") as archive:
        archive.writestr(build.DIGEST_ENTRY, "of another state")
    monkeypatch.setenv("STREAMQL_CACHE", str(tmp_path / "cache"))
    compiled: list[Path] = []
    monkeypatch.setattr(build, "compile_jars", lambda platform: [])
    monkeypatch.setattr(build, "build_jar", lambda jar, platform, classpath: compiled.append(jar))
    assert [build.extension_jar(current())] == compiled


def test_settings_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers>'
        f'<filesystem name="none"><artifact pattern="{tmp_path}/nothing/[artifact].jar"/></filesystem></resolvers></ivysettings>'
    )
    monkeypatch.setenv("STREAMQL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("STREAMQL_IVY_SETTINGS", str(settings))
    with pytest.raises(StreamqlError, match="could not be fetched") as error:
        jars.delta_jars(current())
    assert error.value.code == "JAR_BUILD_FAILED"
    assert "io.delta" in error.value.message
    assert list((tmp_path / "cache" / "jars").glob("*")) == []


def test_make_setup_says_what_it_does_and_what_to_type_next(tmp_path: Path) -> None:
    """With programs that do nothing in the place of Python and streamql."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "streamql"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    command = ["make", "--silent", "setup", f"VENV={tmp_path}"]
    first, second = (
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines() for _ in "12"
    )
    assert [line[:5] for line in first[:-1]] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert first[-1:] == second == [f"ready; next, type: {tmp_path}/bin/streamql --data my-data"]


def test_git_ignores_what_the_docs_make() -> None:
    command = ["git", "check-ignore", "my-data/x", "lake/x", "demo-data/x", "streamql-data/x", "streams.html"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == command[2:]
