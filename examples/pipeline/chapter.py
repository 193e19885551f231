"""The chapter of the flights that shows the pipeline. The SQL is in the scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import Row, SparkSession

from examples.flights.proofs import Proof
from examples.flights.scripts import rows_of, run, script
from examples.flights.terminal import Terminal
from examples.pipeline.scheduler import run_once

DIRECTORY = Path(__file__).parent
QUARANTINED = 3
COMMAND = "streamql scheduler --once"


def tell(spark: SparkSession, terminal: Terminal, data: Path, table: Callable[[str, Sequence[Row]], None]) -> None:
    """Tells it over the flights of a data directory. `table` shows rows below a title. Raises ProofFailed, and what statements raise."""
    for name, shown in (("pipeline", True), ("reports", False)):
        _run(spark, terminal, name, shown)
    with terminal.step(COMMAND, hint="a second process over the same tables") as step:
        ended = run_once(data, data / "scheduler.jsonl")
        step.note = ", ".join(f"{event['task'].partition('.')[2]} {event['event']}" for event in ended)
    table("Planes by the airport that they have flown to", rows_of(spark, "planes_at", DIRECTORY))
    quarantined = rows_of(spark, "quarantined", DIRECTORY)
    table("checked_reports_quarantine", quarantined)
    terminal.say("The reports come again, corrected. They are late events, which find their places in the history.")
    _run(spark, terminal, "corrected", True)
    _run(spark, terminal, "run_now", True)
    with terminal.spinner("prove"):
        proofs = [_all_quarantined(quarantined), *_proved(spark)]
    terminal.prove(proofs)


def _run(spark: SparkSession, terminal: Terminal, name: str, shown: bool) -> None:
    with terminal.running(script(name, DIRECTORY), show=shown):
        run(spark, name, DIRECTORY)


def _all_quarantined(rows: Sequence[Row]) -> Proof:
    return Proof("bad rows stop nothing", len(rows) == QUARANTINED, f"{len(rows)} of {QUARANTINED} in quarantine")


def _proved(spark: SparkSession) -> list[Proof]:
    """The history and the counts = the same, computed from all reports."""
    (row,) = rows_of(spark, "prove_planes", DIRECTORY)
    history = f"{row.states:,} states, {row.missing:,} missing, {row.wrong:,} wrong"
    counts = f"{row.airports:,} airports, {row.different:,} different"
    return [
        Proof("history = all reports", row.states > 0 and (row.missing, row.wrong) == (0, 0), history),
        Proof("counts = current planes", row.airports > 0 and row.different == 0, counts),
    ]
