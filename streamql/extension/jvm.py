"""Starting the embedded session's JVM.

PySpark's own way, bin/spark-submit, starts a second JVM to work out the first one's command line. It also opens an incubator module,
and then every start prints a warning. The command is known here, so it is run directly.
"""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import launch_gateway

from streamql.errors import StreamqlError
from streamql.extension import class_data
from streamql.extension.host import java, spark_home
from streamql.extension.settings import is_one_process

LOG_LEVEL = "STREAMQL_LOG_LEVEL"
"""Environment variable: how much the JVM says; what it takes is in log4j2.properties."""

START_SECONDS_MAX = 120
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


def launch(conf: Mapping[str, str], jvm_options: Sequence[str] = ()) -> JavaGateway:
    """Start a JVM with Spark's settings `conf` and attach to it; it ends when this process does.

    Raises JAVA_NOT_FOUND, or INTERNAL_ERROR if the JVM ends before it listens (what it said is on stderr).
    """
    home = spark_home()
    with tempfile.TemporaryDirectory(prefix="streamql-") as scratch:
        answer = Path(scratch) / "connection"
        environment = dict(os.environ)
        environment |= {
            "SPARK_HOME": str(home),
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
        }
        if is_one_process(conf.get("spark.master", "local")):
            environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # stdin is a pipe without data: its end tells the JVM that this process has ended, in whatever way.
        # A session of its own keeps the terminal's Ctrl-C, which cancels a statement, from ending the JVM.
        # stdout is the program's: what Delta prints of its upgrades and VACUUMs goes with the log, or nowhere.
        process = subprocess.Popen(
            command(conf, home, jvm_options),
            stdin=subprocess.PIPE,
            stdout=2 if LOG_LEVEL in os.environ else subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        port, secret = _await_answer(process, answer)
    gateway = _attach(port, secret)
    gateway.proc = process
    return gateway


def command(
    conf: Mapping[str, str],
    home: Path,
    jvm_options: Sequence[str],
    application: Sequence[str] = ("pyspark-shell",),
) -> list[str]:
    """Returns the command line: java, its options, SparkSubmit and its settings, and what it is to run."""
    executable, classpath = java(), classpath_of(conf, home)
    given = [*jvm_options, *shlex.split(conf.get("spark.driver.extraJavaOptions", ""))]
    line = [str(executable), "-cp", classpath, f"-Xmx{conf.get('spark.driver.memory', '1g')}", *MODULE_OPTIONS]
    line += [*class_data.options(executable, classpath, given), *given]
    line.append("org.apache.spark.deploy.SparkSubmit")
    for key, value in conf.items():
        line += ["--conf", f"{key}={value}"]
    return [*line, *application]


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
