"""`streamql server`: Spark's Thrift server over the data directory, in the foreground, and Spark Connect in the same JVM.

Once it takes connections it says so in one line on stdout, with the URLs. Ctrl-C and SIGTERM end it. The log, on stderr, has what goes
wrong in the server itself; errors of statements go to the client that made them (-v shows everything). Clients are not asked who they
are unless Spark is configured to (--conf spark.hadoop.hive.server2.authentication=…), so think twice before naming another --host.

  streamql --data lake server
  beeline -u jdbc:hive2://127.0.0.1:10000 -e 'SHOW STREAMS'

Exit codes: 1 where it cannot listen or start, 2 for a wrong command line; a signal that ends it cleanly is 130 (Ctrl-C) or 143 (SIGTERM):
under systemd, SuccessExitStatus=143.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys

from streamql.cli.commands.launching import settings
from streamql.console.options import Options
from streamql.errors import StreamqlError
from streamql.shared import constants

THRIFT_PORT = 10000
CONNECT_PORT = 15002
PORT_MAX = 65535
MAIN = "org.apache.spark.sql.hive.thriftserver.streamql.Server"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="the address to listen at (%(default)s)")
    add("--port", type=_port, default=THRIFT_PORT, metavar="N", help="Thrift's port (%(default)s); 0: any free one")
    add("--connect", action="store_true", help="serve Spark Connect as well")
    add(
        "--connect-port",
        type=_port,
        default=CONNECT_PORT,
        metavar="N",
        help="Spark Connect's port (%(default)s); 0: any free one",
    )


def run(options: Options) -> int:
    """Becomes the server's JVM; does not return. Raises INVALID_ARGUMENT where it cannot listen, JAVA_NOT_FOUND, JAR_BUILD_FAILED."""
    from streamql.extension.host import spark_home
    from streamql.extension.jvm import LOG_LEVEL, command, environment

    given = options.arguments
    _check_free(given.host, given.port, "--port")
    # Else Spark would put the values of environment variables into statements, and show them in its log and its UI; any client could
    # read them by SELECT '${env:NAME}'.
    conf = {"spark.sql.variable.substitute": "false", **settings(options)} | {
        "spark.hadoop.hive.server2.thrift.bind.host": given.host,
        "spark.hadoop.hive.server2.thrift.port": str(given.port),
    }
    if given.connect:
        _check_free(given.host, given.connect_port, "--connect-port")
        conf |= {
            "spark.connect.grpc.binding.address": given.host,
            "spark.connect.grpc.binding.port": str(given.connect_port),
            constants("settings")["connect"]: "true",
        }
    home = spark_home()
    line = command(conf, home, ("--class", MAIN, "spark-internal"))
    variables = environment(home, conf)
    if options.verbose:
        variables.setdefault(LOG_LEVEL, "info")
    sys.stdout.flush()
    os.execve(line[0], line, variables)


def _check_free(host: str, port: int, option: str) -> None:
    """Raises INVALID_ARGUMENT where the server could not listen: in a second, and in words."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.create_server((host, port), family=family, reuse_port=False):
            pass
    except OSError as e:
        raise StreamqlError(
            "INVALID_ARGUMENT",
            f"the server cannot listen at {host}, port {port}: {e.strerror}",
            hint=f"name another with {option}, or 0 for any free one",
        ) from e


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)
