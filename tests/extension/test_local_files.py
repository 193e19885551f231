"""The machine's own files: of those who want one name, one gets it, whatever process they are in."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.delta.jvm import JavaObject, jvm

ROUNDS, RACERS = 200, 4


def file_context(spark: SparkSession) -> JavaObject:
    view, conf = jvm(spark), spark._jsparkSession.sparkContext().hadoopConfiguration()
    return view.org.apache.hadoop.fs.FileContext.getFileContext(view.java.net.URI("file:///"), conf)


def path(spark: SparkSession, file: Path) -> JavaObject:
    return jvm(spark).org.apache.hadoop.fs.Path(file.as_uri())


def rename(spark: SparkSession, context: JavaObject, source: Path, target: Path) -> None:
    option = jvm(spark).org.apache.hadoop.fs.Options.Rename
    none = spark.sparkContext._gateway.new_array(option, 0)  # type: ignore[union-attr]  # there is one while Spark runs
    context.rename(path(spark, source), path(spark, target), none)


def renamed(spark: SparkSession, context: JavaObject, source: Path, target: Path) -> bool:
    try:
        rename(spark, context, source, target)
    except Exception as e:
        if "FileAlreadyExistsException" not in str(e):
            raise
        return False
    return True


def test_one_of_those_who_take_a_name_gets_it(spark: SparkSession, tmp_path: Path) -> None:
    """As two processes do that commit the same version of a table. With Hadoop's own class, one of the first names is taken twice."""
    context = file_context(spark)
    start = threading.Barrier(RACERS)
    winners: list[list[int]] = [[] for _ in range(ROUNDS)]

    def race(racer: int) -> None:
        for n in range(ROUNDS):
            source = tmp_path / f"{n}.{racer}.tmp"
            source.write_text(str(racer), encoding="ascii")
            start.wait()
            if renamed(spark, context, source, tmp_path / str(n)):
                winners[n].append(racer)

    threads = [threading.Thread(target=race, args=(racer,)) for racer in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, won in enumerate(winners):
        assert len(won) == 1, (n, won)
        assert (tmp_path / str(n)).read_text(encoding="ascii") == str(won[0])
    assert len([f for f in tmp_path.iterdir() if f.name.endswith(".tmp")]) == ROUNDS * (RACERS - 1)


def test_files_have_the_permissions_that_hadoop_gives_them(spark: SparkSession, tmp_path: Path) -> None:
    view, conf = jvm(spark), spark._jsparkSession.sparkContext().hadoopConfiguration()
    files = path(spark, tmp_path).getFileSystem(conf)
    assert files.getClass().getSimpleName() == "LocalFiles"
    file, directory = tmp_path / "file", tmp_path / "directory"
    files.create(path(spark, file)).close()
    files.mkdirs(path(spark, directory))
    hadoops = int(conf.get("fs.permissions.umask-mode", "022"), 8)
    assert file.stat().st_mode & 0o777 == 0o666 & ~hadoops
    assert directory.stat().st_mode & 0o777 == 0o777 & ~hadoops
    mode = view.org.apache.hadoop.fs.permission.FsPermission("1733")
    files.setPermission(path(spark, directory), mode)
    assert directory.stat().st_mode & 0o7777 == 0o1733
    directory.chmod(0o2770)  # what is made in it gets its group
    files.setPermission(path(spark, directory), view.org.apache.hadoop.fs.permission.FsPermission("755"))
    assert directory.stat().st_mode & 0o7777 == 0o2755


def test_a_name_that_was_given_already_though_the_answer_was_lost(spark: SparkSession, tmp_path: Path) -> None:
    """A network file system may link, lose the answer, ask again, and find that there is such a name. Asked beneath what looks before."""
    view, conf = jvm(spark), spark._jsparkSession.sparkContext().hadoopConfiguration()
    files = view.org.apache.spark.sql.streamql.storage.RawLocalFiles()
    files.initialize(view.java.net.URI("file:///"), conf)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("here", encoding="ascii")
    target.hardlink_to(source)
    assert renamed(spark, files, source, target)
    assert not source.exists()
    assert target.read_text(encoding="ascii") == "here"


def test_links_are_renamed_as_links(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here", encoding="ascii")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    context = file_context(spark)
    assert renamed(spark, context, tmp_path / "link", tmp_path / "other")
    assert (tmp_path / "other").is_symlink()
    with pytest.raises(Exception, match="FileNotFoundException"):
        rename(spark, context, tmp_path / "missing", tmp_path / "new")
