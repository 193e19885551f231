"""The Python process of a JVM that no Python has started: bin/spark-sql, the Thrift and the Connect server.

The JVM starts it (Sidecar.scala), with the address of a gateway and its secret in the environment. It says when it is ready, answers the
JVM's calls, and ends when its standard input does: the JVM is gone then, or done with it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from typing import NoReturn

from streamql.shared import constants

NUMBER = constants("environment")["sidecar"]
"""Environment variable: which start of the JVM's this is."""


def main() -> NoReturn:
    """Serves until standard input ends; ends the process: 0 then, 1 if it could not begin."""
    # PySpark takes Ctrl-C over in the main thread, and Ctrl-C is not for this process.
    threading.Thread(target=_begin, name="streamql-begin", daemon=True).start()
    sys.stdin.buffer.read()
    os._exit(0)  # at once: threads may wait for answers of a JVM that is gone


def _begin() -> None:
    try:
        _serve()
    except Exception as e:
        print(f"{type(e).__name__}: {e}", file=sys.stderr, flush=True)  # noqa: T201 (the JVM puts it into its error)
        os._exit(1)


def _serve() -> None:
    warnings.simplefilter(
        "ignore"
    )  # for developers; users would see this process's output between their own statements
    logging.basicConfig(format="streamql: %(message)s", level=logging.WARNING)
    from streamql.bridge.errors import silence

    silence()
    from pyspark import SparkConf, SparkContext, __version__
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from streamql.bridge.handler import answering
    from streamql.consume import transactions

    gateway = launch_gateway()  # attaches to the JVM that the environment names
    sidecar = gateway.jvm.org.apache.spark.sql.streamql.bridge.Sidecar
    session = sidecar.session()
    version = session.version()
    if version != __version__:
        raise RuntimeError(f"this Python has pyspark {__version__}, and the JVM is Spark {version}")
    java_context = gateway.jvm.JavaSparkContext.fromSparkContext(session.sparkContext())
    context = SparkContext(gateway=gateway, jsc=java_context, conf=SparkConf(_jconf=java_context.getConf()))
    spark = SparkSession(context, session)
    transactions.inherit(spark)
    sidecar.ready(int(os.environ[NUMBER]), answering(spark))
