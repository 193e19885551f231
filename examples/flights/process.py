"""What the demo does as a process: stopping Spark, Ctrl-C, SIGTERM."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import suppress
from types import FrameType

from pyspark import SparkContext
from pyspark.sql import SparkSession

STOP_SECONDS_MAX = 20


class Signals:
    """The first SIGINT or SIGTERM ends the demo; those after it must not leave the clean-up half done, and are ignored.

    `received` tells it for sure: unwinding from a call to the JVM can turn the exception into another one.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    def listen(self) -> None:
        """From now on. To be repeated when Spark has started: it installs a handler of its own."""
        signal.signal(signal.SIGINT, self._receive)
        signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.received = number
        logging.disable(logging.CRITICAL)  # Py4J would log the call that is cut short, with its traceback
        raise KeyboardInterrupt


def stop_session(spark: SparkSession) -> None:
    """Stops Spark, on a thread of its own: the connection of one that was interrupted may still wait for an answer."""

    def stop() -> None:
        with suppress(Exception):  # the JVM may be gone, and then there is nothing to stop
            spark.sparkContext.setLogLevel("OFF")  # what was cancelled need not be reported
            spark.stop()

    thread = threading.Thread(target=stop, name="stop", daemon=True)
    thread.start()
    thread.join(STOP_SECONDS_MAX)
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:  # it must not write into a directory that is about to be removed
        logging.disable(logging.CRITICAL)  # nor is it news that a call, of a stop that takes long, was cut short
        process.kill()
        process.wait()
