"""`python -m tests.transcripts`: runs transcripts, shows them as they run, or writes down the results they have now."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import streamql
from streamql.errors import ERROR_CLASSES
from tests.kafka.broker import Broker
from tests.transcripts.running import Outcome, Result, is_query, run
from tests.transcripts.script import ERROR_START, WARNING_START, Step, Transcript, read

SQL = Path(__file__).resolve().parents[2] / "sql"
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM makes as many tasks, thousands else
    "spark.sql.session.timeZone": "UTC",
    "spark.streamql.connectors": "kafka",
}


def transcripts() -> list[Path]:
    """All of sql/, in reading order."""
    return sorted(SQL.glob("*.slt"))


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 where a result differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.transcripts", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="transcripts, by path or start of name (all of sql/)")
    parser.add_argument("--update", action="store_true", help="write the results as they are now into the files")
    parser.add_argument("--show", action="store_true", help="print statements and results as they run")
    parser.add_argument(
        "--data", metavar="DIR", help="where the session lives (a directory that is removed afterwards)"
    )
    given = parser.parse_args(arguments)
    paths = _chosen(given.files, parser)

    with tempfile.TemporaryDirectory() as directory, lazy_broker() as bootstrap:
        spark = streamql.session(given.data or Path(directory) / "data", CONF)
        try:
            return run_all(spark, paths, update=given.update, show=given.show, bootstrap=bootstrap)
        finally:
            spark.stop()


@contextmanager
def lazy_broker() -> Iterator[Callable[[], str]]:
    """A function that gives the address of a Kafka broker, which its first call starts."""
    started: list[Broker] = []

    def bootstrap() -> str:
        if not started:
            started.append(Broker("secret").start())
        return started[0].bootstrap

    try:
        yield bootstrap
    finally:
        for broker in started:
            broker.close()


def _chosen(names: list[str], parser: argparse.ArgumentParser) -> list[Path]:
    if not names:
        return transcripts()
    chosen = []
    for name in names:
        found = [Path(name)] if Path(name).is_file() else [p for p in transcripts() if p.name.startswith(name)]
        if not found:
            parser.error(f"no transcript {name}")
        chosen += found
    return chosen


def run_all(
    spark: SparkSession,
    paths: Iterable[Path],
    *,
    update: bool = False,
    show: bool = False,
    bootstrap: Callable[[], str] | None = None,
) -> int:
    """Runs transcripts, says how each went, and gives the exit code."""
    failed = 0
    for path in paths:
        transcript, start, outcomes = read(path), time.monotonic(), []
        for outcome in run(transcript, spark, bootstrap=bootstrap):
            outcomes.append(outcome)
            if show:
                print(_shown(outcome), flush=True)
        differences = [o.difference for o in outcomes if o.difference is not None]
        if update and (text := updated(transcript, outcomes)) != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
        for difference in () if show or update else differences:
            print(difference)
        verdict = "ok" if not differences else f"{len(differences)} {'updated' if update else 'differ'}"
        print(f"{path.name}: {len(outcomes)} statements, {verdict} ({time.monotonic() - start:.1f} s)", flush=True)
        failed += bool(differences)
    return int(failed > 0 and not update)


def _shown(outcome: Outcome) -> str:
    mark = "  -- <<< not as expected" if outcome.difference is not None else ""
    end = ";" if outcome.step.action is None else ""
    return "\n".join([f"{outcome.step.text}{end}{mark}", *outcome.result.lines(), ""])


def updated(transcript: Transcript, outcomes: Iterable[Outcome]) -> str:
    """The transcript's text with the results that differ replaced; all others stay as they are, masks and frames too.

    Only bare codes of our own errors are completed with their text.
    """
    lines = list(transcript.lines)
    for outcome in reversed(list(outcomes)):
        step = outcome.step
        if outcome.difference is None and not _is_bare_code(step):
            continue
        lines[step.block_at : step.block_at + len(step.block)] = _block(step, outcome.result)
    return "\n".join(lines) + "\n"


def _is_bare_code(step: Step) -> bool:
    return len(step.block) == 1 and step.block[0].removeprefix(ERROR_START).removesuffix("]") in ERROR_CLASSES


def _block(step: Step, result: Result) -> list[str]:
    wants_rows = bool(step.block) or is_query(step.text)
    wants_warnings = any(line.startswith(WARNING_START) for line in step.block)
    warnings = [WARNING_START + text for text in result.warnings] if wants_warnings else []
    return warnings + (result.lines() if result.error or wants_rows else [])


if __name__ == "__main__":
    sys.exit(main())
