"""What the embedded session is started with: its settings, and its JVM. Nothing here imports PySpark."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from streamql.extension import jvm, metastore
from streamql.extension.host import java
from streamql.extension.settings import conf_lines, is_one_process, joined, small_tables
from streamql.settings import CONNECTORS, check

DRIVER_MEMORY_SHARE = 0.5
DRIVER_MEMORY_MB_MIN = 1024
DRIVER_MEMORY_MB_MAX = 8192

_LOG_CONF = Path(__file__).with_name("log4j2.properties")

log = logging.getLogger("streamql")

_lock = threading.Lock()
_ahead: tuple[Path, dict[str, str], jvm.Starting] | None = None
"""The arguments of `start_ahead`, and its JVM, until `started` takes it."""


def start_ahead(data: str | os.PathLike[str], conf: Mapping[str, str], *, is_brief: bool = False) -> None:
    """Starts the JVM of the session that `streamql.session(data, conf)` is about to return, so that the caller can import PySpark
    meanwhile. If PySpark is imported already, it does nothing, because this process may have a session.

    `is_brief`: the process ends within seconds. Raises what `session` raises for these arguments."""
    global _ahead
    if "pyspark" in sys.modules:
        return
    asked = arguments(data, conf)
    with _lock:
        if _ahead is None:
            _ahead = (*asked, jvm.start(embedded_conf(*asked), is_brief=is_brief))


def started(data: Path, given: dict[str, str]) -> jvm.Starting:
    """Returns the JVM for these arguments, as `arguments` returns them: that of `start_ahead`, or a new one. Raises what `embedded_conf`
    raises."""
    global _ahead
    with _lock:
        ahead, _ahead = _ahead, None
    if ahead is not None:
        *asked, starting = ahead
        if asked == [data, given]:
            return starting
        starting.end()
    return jvm.start(embedded_conf(data, given))


def arguments(data: str | os.PathLike[str], conf: Mapping[str, str] | None) -> tuple[Path, dict[str, str]]:
    """Returns what a caller gives a session, checked: the directory, absolute, and the settings as strings. Raises INVALID_ARGUMENT."""
    directory = metastore.data_directory(data).expanduser().resolve()
    given = {key: str(value) for key, value in (conf or {}).items()}
    check(given)
    return directory, given


def embedded_conf(data: Path, overrides: Mapping[str, str]) -> dict[str, str]:
    """Returns every setting of the embedded session over `data`, an absolute path, and makes nothing there; `overrides` go before them.
    Warns if `overrides` name a cluster whose executors cannot see the warehouse. Raises INVALID_ARGUMENT, OSError, JAVA_NOT_FOUND,
    JAR_BUILD_FAILED."""
    metastore.check(data)
    java()
    given = {key: str(value) for key, value in overrides.items()}
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "streamql",
        "spark.driver.memory": f"{_driver_memory_mb()}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(data / "warehouse"),
    }
    settings |= given
    warehouse = metastore.location(settings["spark.sql.warehouse.dir"])
    if is_one_process(settings["spark.master"]):
        settings = {**_one_process(), **settings}
    else:
        _warn_of_local_warehouse(
            settings["spark.master"], warehouse, metastore.default_location(metastore.file_of(data)) or warehouse
        )
    settings = {**settings, **metastore.conf(metastore.file_of(data)), **given}
    classpath = os.pathsep.join(map(str, metastore.jars()))
    settings["spark.driver.extraClassPath"] = joined(
        "spark.driver.extraClassPath", settings.get("spark.driver.extraClassPath"), classpath
    )
    for key, value in conf_lines(settings.get(CONNECTORS.key, ""), given).items():
        if key == "spark.jars" and is_one_process(settings["spark.master"]):  # executors are threads of the JVM
            continue
        settings[key] = joined(key, settings.get(key), value)
    options = settings.get("spark.driver.extraJavaOptions", "")
    if "log4j2.configurationFile" not in options:
        settings["spark.driver.extraJavaOptions"] = (
            f'"-Dlog4j2.configurationFile={_LOG_CONF.as_uri()}" {options}'.strip()
        )
    return settings


def _one_process() -> dict[str, str]:
    """Settings of a Spark that is one process. On a cluster, Spark's own stand: executors connect to the driver from other machines."""
    cores = os.cpu_count() or 1
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **small_tables(cores),  # the data of one directory on one machine
        # Hadoop's own starts a process for each file that it makes. Executors would need the class before they have the jar.
        "spark.hadoop.fs.file.impl": "org.apache.spark.sql.streamql.storage.LocalFiles",
    }


def _warn_of_local_warehouse(master: str, warehouse: str, default: str) -> None:
    """Warn if tables would be made in a directory of this machine. `default`: where the schema `default` is."""
    for what, location in (("new schemas", warehouse), ("the schema default", default)):
        if location.startswith("file:"):
            log.warning(
                "executors of %s do not see files of this machine, where the tables of %s are (%s), unless it is a shared file system; "
                "set spark.sql.warehouse.dir to storage that all machines see, such as s3a://bucket/warehouse, in a new data directory",
                master,
                what,
                location,
            )
            return


def _driver_memory_mb() -> int:
    """Half of the memory this process may use, within bounds, in MiB."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        machine = min(machine, int(limit)) if limit.isdigit() else machine
    except OSError:
        pass
    return max(DRIVER_MEMORY_MB_MIN, min(DRIVER_MEMORY_MB_MAX, int(machine * DRIVER_MEMORY_SHARE) >> 20))
