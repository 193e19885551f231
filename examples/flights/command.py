"""What the demos do as commands. Exit code 0: every proof held; 1: one did not; 2: it cannot run here."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import streamql
from examples.flights.problems import DemoError, ProofFailed
from examples.flights.process import Signals, stop_session

EXIT_FAILED, EXIT_UNUSABLE, EXIT_BY_SIGNAL = 1, 2, 128


def run_command(name: str, asked: Path | None, work: Callable[[Signals, Path], int], interrupted: str) -> int:
    """Runs `work` in its data directory, and returns the exit code. `name`: of the demo. `asked`: as `_directory` takes it.
    `interrupted`: what is said after Ctrl-C."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace", line_buffering=True)
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    signals = Signals()
    signals.listen()
    try:
        with _directory(name, asked) as directory:
            return work(signals, directory)
    except DemoError as e:
        print(f"{name}: {e}", file=sys.stderr)
        return EXIT_UNUSABLE
    except BaseException:
        if signals.received is None:
            raise
        print(f"\n{name}: {interrupted}", file=sys.stderr)
        return EXIT_BY_SIGNAL + signals.received


@contextmanager
def _directory(name: str, asked: Path | None) -> Iterator[Path]:
    """The data directory: the one asked for, else a temporary one that is removed in the end. Raises DemoError if it is in use."""
    if asked is None:
        directory = Path(tempfile.mkdtemp(prefix=f"streamql-{name}-"))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return
    if asked.exists() and (not asked.is_dir() or any(asked.iterdir())):
        raise DemoError(f"{asked} is there already and not empty: remove it, or name another directory with --data")
    yield asked


def told(name: str, signals: Signals, spark: SparkSession, tell: Callable[[], None]) -> int:
    """Tells a story, stops Spark, and returns the exit code."""
    signals.listen()
    try:
        tell()
    except (ProofFailed, PySparkException, streamql.StreamqlError) as e:
        if signals.received is not None:
            raise
        print(f"\n{name}: {'a proof failed: ' if isinstance(e, ProofFailed) else ''}{e}", file=sys.stderr)
        return EXIT_FAILED
    except (Py4JNetworkError, ConnectionError):
        if signals.received is not None:
            raise
        print(f"\n{name}: Spark's Java process ended; was it killed, or short of memory?", file=sys.stderr)
        return EXIT_FAILED
    finally:
        stop_session(spark)
    return 0
