"""Who a process runs as, and where: what the catalog records of actors."""

from __future__ import annotations

import socket

from pyspark.sql import SparkSession


def user_of(spark: SparkSession) -> str:
    """Returns who the session runs as."""
    return str(spark.sparkContext.sparkUser())


def host_name() -> str:
    """This machine's name."""
    return socket.gethostname()
