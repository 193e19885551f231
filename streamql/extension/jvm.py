"""Starting the embedded session's JVM.

PySpark's own way, bin/spark-submit, starts a second JVM to work out the first one's command line. It also opens an incubator module,
and then every start prints a warning. The command is known here, so it is run directly.
"""

from __future__ import annotations

import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.errors import StreamqlError
from streamql.extension import class_data
from streamql.extension.build import EXTENSION_PREFIX
from streamql.extension.host import java, spark_home
from streamql.extension.settings import is_one_process

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

START = "org.apache.spark.sql.streamql.entry.Start"
"""The class of the extension that runs SparkSubmit, and initializes some libraries meanwhile."""

LOG_LEVEL = "STREAMQL_LOG_LEVEL"
"""Environment variable: how much the JVM says; what it takes is in log4j2.properties."""

START_SECONDS_MAX = 120
FEW_CORES = 2
_C1_ALONE = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
_LATE_C2 = tuple(
    f"-XX:Tier4{name}Threshold={count}"
    for name, count in {"Invocation": 100_000, "MinInvocation": 12_000, "Compile": 300_000, "BackEdge": 800_000}.items()
)
"""Java's second compiler compiles what has run twenty times as often as by default. By default, it takes a core for the first seconds of
Spark, and a quarter of the CPU of the first ten minutes of tests; with five times, an eighth."""
_HEAP_MB = 1024
"""The heap at first. By default it is so small that a start collects garbage twice, which takes 0.1 s."""
_OPTIONS_OF_JAVA = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
_POLL_SECONDS = 0.02
_ATTACH = threading.Lock()

MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""What org.apache.spark.launcher.JavaModuleOptions of Spark 4.2 says, less the incubator module (it speeds up MLlib only). A test compares
them."""


@dataclass(frozen=True)
class Starting:
    """A JVM that was started, and may not listen yet. `conf`: Spark's settings. `answer`: the file that tells how to attach to it.
    `scratch`: the directory of that file."""

    conf: Mapping[str, str]
    process: subprocess.Popen[bytes]
    answer: Path
    scratch: tempfile.TemporaryDirectory[str]

    def attach(self) -> JavaGateway:
        """Waits until the JVM listens, and attaches to it. Raises INTERNAL_ERROR if it ends before (what it said is on stderr)."""
        with self.scratch:
            port, secret = _await_answer(self.process, self.answer)
        gateway = _attach(port, secret)
        gateway.proc = self.process
        return gateway

    def end(self) -> None:
        """Ends a JVM that is not needed."""
        self.process.kill()
        self.process.wait()
        self.scratch.cleanup()


def start(conf: Mapping[str, str], *, is_brief: bool = False) -> Starting:
    """Starts a JVM with Spark's settings `conf`; it ends when this process does. `is_brief`: within seconds. Raises JAVA_NOT_FOUND."""
    home = spark_home()
    scratch = tempfile.TemporaryDirectory(prefix="streamql-")
    answer = Path(scratch.name) / "connection"
    # stdin is a pipe without data: its end tells the JVM that this process has ended, in whatever way.
    # A session of its own keeps the terminal's Ctrl-C, which cancels a statement, from ending the JVM.
    # stdout is the program's: what Delta prints of its upgrades and VACUUMs goes with the log, or nowhere.
    process = subprocess.Popen(
        command(conf, home, is_brief=is_brief),
        stdin=subprocess.PIPE,
        stdout=2 if LOG_LEVEL in os.environ else subprocess.DEVNULL,
        env={**environment(home, conf), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer)},
        start_new_session=True,
    )
    return Starting(conf, process, answer, scratch)


def environment(home: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a JVM with settings `conf`: this Spark. If Spark is one process, this Python and loopback."""
    # What a PySpark driver has set for its own JVM does not hold for this one.
    dropped = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    result = {key: value for key, value in os.environ.items() if key not in dropped}
    result |= {"SPARK_HOME": str(home), "SPARK_CONNECT_MODE": "0"}
    if is_one_process(conf.get("spark.master", "local")):
        result.setdefault("PYSPARK_PYTHON", sys.executable)
        result.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return result


def command(
    conf: Mapping[str, str], home: Path, application: Sequence[str] = ("pyspark-shell",), *, is_brief: bool = False
) -> list[str]:
    """Returns the command line: java, its options, SparkSubmit or what runs it, Spark's settings, and what is to be run. `is_brief`: the
    JVM ends within seconds."""
    executable, classpath = java(), classpath_of(conf, home)
    given = shlex.split(conf.get("spark.driver.extraJavaOptions", ""))
    memory = conf.get("spark.driver.memory", "1g")
    line = [str(executable), "-cp", classpath, f"-Xmx{memory}", *MODULE_OPTIONS]
    line += [*beside_statements(given, memory, is_brief), *class_data.options(executable, classpath, given), *given]
    line.append(START if EXTENSION_PREFIX in classpath else "org.apache.spark.deploy.SparkSubmit")
    for key, value in conf.items():
        line += ["--conf", f"{key}={value}"]
    return [*line, *application]


def beside_statements(given: Sequence[str], memory: str, is_brief: bool) -> list[str]:
    """Returns the options of Java for what takes its time beside the statements: the compilers, and the collector of garbage.

    `given`: the options that Java gets besides, which go before these. `memory`: the most that its heap may take, as Java spells it.
    """
    others = [*given, *(word for name in _OPTIONS_OF_JAVA for word in shlex.split(os.environ.get(name, "")))]
    is_own = any(option.startswith("-XX:+Use") and option.endswith("GC") for option in others)
    # With more cores, others than those of the statement compile and collect.
    collector = [] if is_own or (os.cpu_count() or 1) > FEW_CORES else ["-XX:+UseSerialGC"]
    size = re.fullmatch(r"(\d+)([gm])", memory, re.IGNORECASE)
    megabytes = int(size[1]) * (1024 if size[2] in "gG" else 1) if size else 0
    heap = [f"-Xms{_HEAP_MB}m"] if megabytes >= _HEAP_MB else []
    return [*collector, *heap, *(_C1_ALONE if is_brief else _LATE_C2)]


def classpath_of(conf: Mapping[str, str], home: Path | None = None) -> str:
    """Returns the class path of Spark at `home` (None: the one that is used) with settings `conf`.

    It is the same, to the letter, as that of org.apache.spark.launcher.AbstractCommandBuilder, so that bin/spark-sql can use the same class
    data archive; a test compares them.
    """
    home = home or spark_home()
    conf_dir = os.environ.get("SPARK_CONF_DIR") or str(home / "conf")
    first = [str(jar) for jar in sorted((home / "jars").glob("slf4j-api-*.jar"))[:1]]
    parts = [conf.get("spark.driver.extraClassPath", ""), conf_dir, *first, str(home / "jars" / "*")]
    return os.pathsep.join(part for part in parts if part)


def _await_answer(process: subprocess.Popen[bytes], answer: Path) -> tuple[int, str]:
    """Returns the port and secret that the JVM writes, whole, when it listens: two values, each an int or length-prefixed UTF-8."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while not answer.exists():
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            process.kill()
            what = f"ended with exit code {code}" if code is not None else f"was not ready within {START_SECONDS_MAX} s"
            hint = "what it said is above; a common cause is spark.driver.memory larger than the machine's"
            raise StreamqlError("INTERNAL_ERROR", f"Spark's Java process {what}", hint=hint)
        time.sleep(_POLL_SECONDS)
    content = answer.read_bytes()
    port, length = struct.unpack_from(">ii", content)
    return port, content[8 : 8 + length].decode()


def _attach(port: int, secret: str) -> JavaGateway:
    """Returns a gateway to a JVM that listens already; PySpark takes its address from the environment."""
    from pyspark.java_gateway import launch_gateway

    given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    with _ATTACH:
        saved = {key: os.environ.pop(key, None) for key in given}
        os.environ.update(given)
        try:
            return launch_gateway()
        finally:
            for key, value in saved.items():
                del os.environ[key]
                if value is not None:
                    os.environ[key] = value
