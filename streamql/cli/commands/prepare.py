"""Fetches and builds now what a first start would need: for images, for machines without a
network, and for quicker starts.

It fetches the jars, compiles the extension (only in a source checkout: a wheel has it), and writes
a class data archive, with which a start takes 3 s instead of 6 on two cores. It leaves alone what
is there already. streamql works without it.

The cache directory ($STREAMQL_CACHE, else ~/.cache/streamql) holds:
  jars       Delta Lake, the metastore's JDBC driver and connectors, from Maven repositories
  extension  the extension, compiled from the sources of a checkout: one jar for each state of them
  classes    class data archives, 220 MB each; prepare removes those that no start used for a month
  history    what was typed at the shell's prompt, unless $STREAMQL_HISTORY names another file

In a Dockerfile, with the cache where every user of the image finds it:

  ENV STREAMQL_CACHE=/opt/streamql
  RUN pip install streamql-*.whl && streamql prepare && chmod -R a+rX /opt/streamql

To uninstall: pip uninstall streamql, and remove the cache directory that --show prints. Tables and
streams stay in their data directories.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from streamql.console.options import Options
from streamql.console.render.quantities import size
from streamql.extension.host import cache_dir

END_SECONDS_MAX = 120
"""The JVM writes the archive as it ends, which takes some seconds."""
PARTS = ("jars", "extension", "classes", "history")
"""What is in the cache: directories, and a file."""
NO_ARCHIVE = "ready, but Java wrote no class data archive, so starts are not quicker"

_STATEMENTS = (
    "CREATE TABLE t (id BIGINT, at TIMESTAMP, v STRING)",
    "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true')",
    "CREATE STREAM s ON TABLE t",
    "INSERT INTO t SELECT id, current_timestamp(), concat('v', id) FROM range(0, 1000, 1, 2)",
    "CREATE TABLE r AS SELECT id, v FROM s",
    "SHOW STREAMS",
)
"""What is done in most sessions: their classes are loaded, and so written down."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.add_argument("--show", action="store_true", help="only print where the cache is, and what it holds")
    parser.add_argument("--without-classes", action="store_true", help="write no class data: starts are slower")


def run(options: Options) -> int:
    """Prepares, or shows the cache. Raises JAVA_NOT_FOUND, JAR_BUILD_FAILED, and INTERNAL_ERROR if Java does not start."""
    if options.arguments.show:
        _show(cache_dir())
        return 0
    from streamql.extension import class_data
    from streamql.extension.embedded import embedded_conf
    from streamql.extension.host import java, locked
    from streamql.extension.jvm import classpath_of

    with tempfile.TemporaryDirectory(prefix="streamql-prepare-") as scratch:
        conf = embedded_conf(Path(scratch), options.conf)
        archive = class_data.path_of(java(), classpath_of(conf))
        problem = None
        if not archive.exists() and not options.arguments.without_classes:
            with locked("classes"):
                if not archive.exists():
                    _say("streamql: writing down Spark's classes for quick starts (once, a minute)", options)
                    archive.parent.mkdir(parents=True, exist_ok=True)
                    class_data.remove_unused(archive.parent)
                    problem = _write(Path(scratch), archive, options)
    _say("ready" if problem is None else f"{NO_ARCHIVE}: {problem}", options)
    return 0


def _show(cache: Path) -> None:
    """Print the directory, then the files and bytes of each part of it."""
    print(cache)
    for part in PARTS:
        files = (path for path in (cache / part, *(cache / part).rglob("*")) if path.is_file())
        sizes = [path.stat().st_size for path in files]
        print(f"  {part:<10} {len(sizes):>4} {'file ' if len(sizes) == 1 else 'files'} {size(sum(sizes)):>8}")


def _say(text: str, options: Options) -> None:
    if not options.silent:
        print(text, file=sys.stderr)


def _write(data: Path, archive: Path, options: Options) -> str | None:
    """Runs a session that does a bit of everything, in a JVM that writes the archive as it ends. Returns why it wrote none, or None."""
    from pyspark import SparkContext

    from streamql.extension import class_data
    from streamql.extension.host import QUICK_JVM
    from streamql.sessions import session

    part = archive.with_suffix(f".{os.getpid()}")
    said = data / "java.log"
    own = [f"{class_data.WRITE}{part}", "-Xlog:disable", f"-Xlog:cds*=warning:file={said}:none", *QUICK_JVM]
    given = options.conf.get("spark.driver.extraJavaOptions", "")
    spark = session(data, {**options.conf, "spark.driver.extraJavaOptions": f"{given} {shlex.join(own)}".strip()})
    for statement in _STATEMENTS:
        spark.sql(statement).collect()
    gateway = SparkContext._gateway
    assert gateway is not None  # of the session
    spark.stop()
    gateway.proc.stdin.close()  # its end is the JVM's
    try:
        gateway.proc.wait(END_SECONDS_MAX)
        os.replace(part, archive)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        return f"Java did not end within {END_SECONDS_MAX} s"
    except OSError as e:
        heard = said.read_text(encoding="utf-8", errors="replace").split("\n") if said.exists() else []
        return "; ".join(line.strip() for line in heard if line.strip()) or str(e)
    finally:
        part.unlink(missing_ok=True)
    return None
