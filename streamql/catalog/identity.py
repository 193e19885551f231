"""The user and the host of a process, as the catalog records them."""

from __future__ import annotations

import socket

from pyspark.sql import SparkSession


def user_of(spark: SparkSession) -> str:
    """Returns the user that the session runs as."""
    return str(spark.sparkContext.sparkUser())


def host_name() -> str:
    """Returns the name of this machine."""
    return socket.gethostname()
