"""The sidecar: the Python process of a JVM that was not started by Python (bin/spark-sql, the Thrift server, the Connect server).

The JVM starts it (Sidecar.scala), with the address of a gateway and its secret in the environment. It tells the JVM when it is ready, and
answers the JVM's calls. It ends when its standard input ends, because the JVM has then ended or no longer needs it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from typing import NoReturn

from streamql.extension.platforms import release
from streamql.shared import constants

NUMBER = constants("environment")["sidecar"]
"""Environment variable: how many sidecars the JVM has started, with this one."""


def main() -> NoReturn:
    """Serves until standard input ends, and then ends the process with code 0. If it cannot start, ends the process with code 1."""
    # PySpark installs a handler of Ctrl-C if it runs in the main thread. Ctrl-C is meant for the JVM, and not for this process.
    threading.Thread(target=_begin, name="streamql-begin", daemon=True).start()
    sys.stdin.buffer.read()
    from streamql.catalog.observers import close_observers

    close_observers()
    os._exit(0)  # without waiting for threads: these may wait for answers of a JVM that has ended


def _begin() -> None:
    try:
        _serve()
    except Exception as e:
        print(f"{type(e).__name__}: {e}", file=sys.stderr, flush=True)  # noqa: T201 (the JVM puts it into its error)
        os._exit(1)


def _serve() -> None:
    warnings.simplefilter("ignore")  # they are for developers, and would be printed between the statements of a user
    logging.basicConfig(format="streamql: %(message)s", level=logging.WARNING)
    from streamql.bridge.errors import silence

    silence()
    from pyspark import SparkConf, SparkContext, __version__
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from streamql.bridge.handler import answering
    from streamql.consume import session_transactions

    gateway = launch_gateway()  # attaches to the JVM that the environment names
    sidecar = gateway.jvm.org.apache.spark.sql.streamql.bridge.Sidecar
    session = sidecar.session()
    version = session.version()
    if release(version) != release(__version__):
        raise RuntimeError(f"this Python has pyspark {__version__}, and the JVM is Spark {version}")
    java_context = gateway.jvm.JavaSparkContext.fromSparkContext(session.sparkContext())
    context = SparkContext(gateway=gateway, jsc=java_context, conf=SparkConf(_jconf=java_context.getConf()))
    spark = SparkSession(context, session)
    session_transactions.inherit(spark)
    sidecar.ready(int(os.environ[NUMBER]), answering(spark))
