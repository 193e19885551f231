"""The story: what is run, in which order, and what is told of it. The SQL is in the scripts; here is none that changes anything."""

from __future__ import annotations

import calendar
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import Row, SparkSession

import streamql
from examples.flights import data, proofs
from examples.flights.scripts import rows_of, run, script
from examples.flights.terminal import Terminal, check
from examples.pipeline import chapter

CONSUMERS = ("replica", "daily_delays", "audit")
BATCHES = ((2, 3), (4, 7), (8, 12))
"""After January: the first and the last month of what is loaded between two consumptions."""
REPORT_MONTH = 9
LEDGER_COLUMNS = ("stream", "target", "after", "through", "rows", "target_version", "seconds")
STREAM_COLUMNS = ("name", "table_name", "mode", "offset_version", "lag_versions", "has_data", "stale")
REFRESH_COLUMNS = ("outcome", "reason", "rows_inserted", "rows_updated", "rows_deleted")
REST_COLUMNS = (
    "",
    "versions",
    "touched",
    "INSERT",
    "UPDATE",
    "DELETE",
    "replica",
    "summary",
    "audit",
    "proved",
    "s",
)
REST_WIDTHS = (-8, 9, 8, 8, 8, 8, 8, 8, 8, 7, 6)


class Story:
    """A run of the demo over a fresh data directory."""

    def __init__(self, spark: SparkSession, terminal: Terminal, flights: Mapping[int, list[str]], months: int) -> None:
        self._spark = spark
        self._terminal = terminal
        self._flights = flights
        self._months = months
        self._landing = Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")) / "landing"
        self._touched = 0
        """Rows that statements on `flights` have touched since the consumers ran."""

    def tell(self) -> None:
        """All of it. Raises ProofFailed, and what statements raise."""
        self._set_up()
        self._january()
        self._corrections()
        self._optimize()
        batches = [months for first, last in BATCHES if (months := range(first, min(last, self._months) + 1))]
        if batches:
            self._one_go(batches[0])
        if batches[1:]:
            self._rest(batches[1:])
        self._dynamic_table()
        self._pipeline()
        self._last_proof()
        self._look_back()

    # -- the chapters

    def _set_up(self) -> None:
        self._terminal.section(
            "Tables and streams",
            "A table that tracks its changes, three streams on it, and three tables that the streams will feed.",
        )
        self._run("tables")
        self._run("streams", show=True)

    def _january(self) -> None:
        self._terminal.section(
            "January arrives",
            "A month is loaded by a plain INSERT; the streams show it, and three statements carry it on.",
        )
        self._load(1)
        self._look()
        self._consume(show=True)
        self._prove()

    def _corrections(self) -> None:
        self._terminal.section(
            "Late corrections",
            "UPDATE, MERGE and DELETE change what was loaded. A stream shows the net change of each row, and nothing for an UPDATE "
            "that changed nothing.",
        )
        for name in ("late_arrivals", "carrier_report", "withdrawn"):
            self._run(name, show=True)
        self._look(sample=True)
        self._terminal.say("The same three statements as before carry the corrections on.")
        self._consume()
        self._prove()

    def _optimize(self) -> None:
        self._terminal.section(
            "Housekeeping",
            "OPTIMIZE rewrites every file and changes no row: the streams lag by a version, and have nothing to show.",
        )
        self._run("optimize", show=True)
        self._look()
        self._streams()
        self._prove()

    def _one_go(self, months: Sequence[int]) -> None:
        names = " and ".join(calendar.month_name[month] for month in months)
        self._terminal.section(
            f"{names} in one go",
            "Late corrections, new flights and withdrawals pile up before anyone consumes: several commits, one change set. Flights "
            "that came and went meanwhile are not in it; the audit stream (APPEND_ONLY) shows every flight that came.",
        )
        self._run("late_arrivals")
        for month in months:
            self._load(month)
        self._run("withdrawn")
        self._look()
        self._consume()
        self._prove()

    def _rest(self, batches: Sequence[Sequence[int]]) -> None:
        self._terminal.section(
            "The rest of the year" if self._months == 12 else "The months that follow",
            "The same, a line for several months, in September with the carriers' report and OPTIMIZE. Touched: rows that the statements "
            "on flights wrote, changed or removed; INSERT, UPDATE, DELETE: what the stream shows of that; replica, summary, audit: rows "
            "that the consumers wrote.",
        )
        self._terminal.cells(REST_COLUMNS, REST_WIDTHS, "bold")
        for months in batches:
            self._several_months(months)

    def _several_months(self, months: Sequence[int]) -> None:
        """One line of the year."""
        started_s = self._terminal.elapsed_s
        name = "-".join(dict.fromkeys(calendar.month_abbr[month] for month in (months[0], months[-1])))
        self._quietly(name, "late_arrivals")
        for month in months:
            data.deliver(self._flights[month], self._landing, month)
            self._quietly(name, "load_month")
        if REPORT_MONTH in months:
            self._quietly(name, "carrier_report")
            self._quietly(name, "optimize")
        self._quietly(name, "withdrawn")
        shown = {row["__change_type"]: row["rows"] for row in self._quietly(name, "what_changed")}
        for consumer in CONSUMERS:
            self._quietly(name, consumer)
        with self._terminal.spinner(f"{name}: prove"):
            ledger = {row.target: row for row in self._newest_consumptions()}
            audited, history = proofs.audit(self._spark)
            claims = [proofs.replica(self._spark), proofs.daily_delays(self._spark), audited]
        after, through = ledger["flights_replica"].after, ledger["flights_replica"].through
        counts = [shown.get(change_type, 0) for change_type in ("INSERT", "UPDATE_AFTER", "DELETE")]
        fed = [ledger[target].rows for target in ("flights_replica", "daily_delays", "flight_audit")]
        proved = " ".join(self._terminal.mark(claim.holds) for claim in claims)
        touched = proofs.rows_touched(history, after, through)
        seconds = f"{self._terminal.elapsed_s - started_s:.1f}"
        self._terminal.cells((name, f"{after + 1}-{through}", touched, *counts, *fed, proved, seconds), REST_WIDTHS)
        check(claims)

    def _dynamic_table(self) -> None:
        self._terminal.section(
            "A dynamic table",
            "A query defines the table carrier_days. A refresh computes the query, and writes the rows that differ. A stream on the table "
            "shows them, and feeds a log.",
        )
        self._run("airlines")
        shutil.copy(data.airlines(), self._landing.parent / "airline_names")
        self._run("carrier_days", show=True)
        self._terminal.say("Flights are corrected once more.")
        self._run("late_arrivals")
        self._run("withdrawn")
        with self._terminal.running(script("refresh"), show=True):
            done = rows_of(self._spark, "refresh")
        self._table("What the refresh did", done, REFRESH_COLUMNS)
        self._run("day_log", show=True)
        self._table("Some of what the stream showed", rows_of(self._spark, "day_log_sample"))
        with self._terminal.spinner("prove"):
            claim = proofs.carrier_days(self._spark)
        self._terminal.prove([claim])
        for name in CONSUMERS:
            self._quietly("the streams on flights", name)

    def _pipeline(self) -> None:
        self._terminal.section(
            "A pipeline that runs by itself",
            "Reports come as text, some of them wrong. A checked stream, a history, a dynamic table and two tasks are all there is: the "
            "scheduler runs them.",
        )
        chapter.tell(self._spark, self._terminal, self._landing.parents[1], self._table)

    def _last_proof(self) -> None:
        self._terminal.section(
            "The last proof", "Source and replica compared row by row, in every column, in both directions."
        )
        with self._terminal.step(script("prove_row_by_row").shown, hint="all rows, in both directions"):
            claim = proofs.row_by_row(self._spark)
        self._terminal.prove([claim])
        self._table("What the summary is for: the carriers' worst days", rows_of(self._spark, "worst_days"))

    def _look_back(self) -> None:
        self._terminal.section(
            "What streamql remembers", "Where each stream stands, and the ledger: who took which changes, and where to."
        )
        self._streams()
        self._table("SELECT … FROM streamql.consumptions, the newest", rows_of(self._spark, "ledger"), LEDGER_COLUMNS)

    # -- what the chapters are made of

    def _run(self, name: str, show: bool = False) -> None:
        """Runs a script, telling how many rows it touched; with `show`, its text first."""
        with self._terminal.running(script(name), show=show) as step:
            last = run(self._spark, name)[-1]
            if last and "num_affected_rows" in last[0]:
                step.note = _affected(last[0])
                self._touched += 0 if name in CONSUMERS else last[0].num_affected_rows

    def _quietly(self, where: str, name: str) -> list[Row]:
        """Runs a script without a line of its own; the rows of its last statement."""
        with self._terminal.spinner(f"{where}: {script(name).path.name}"):
            return rows_of(self._spark, name)

    def _load(self, month: int) -> None:
        lines = self._flights[month]
        flights = data.deliver(lines, self._landing, month)
        with self._terminal.running(script("load_month"), show=True) as step:
            run(self._spark, "load_month")
            step.note = f"{flights:,} flights of {calendar.month_name[month]}"
        self._touched += flights

    def _look(self, sample: bool = False) -> None:
        """What the STANDARD streams show: counts by change_type, and some changes."""
        with self._terminal.spinner("read the stream"):
            changes = rows_of(self._spark, "what_changed")
            shown = rows_of(self._spark, "sample") if sample else []
        title = f"{self._touched:,} rows were touched; the stream flights_to_replica shows"
        self._table(title, changes, empty="nothing")
        if shown:
            self._table("Some of it", shown)

    def _streams(self) -> None:
        with self._terminal.spinner("SHOW STREAMS"):
            streams = streamql.sql("SHOW STREAMS", self._spark).collect()
        self._table("SHOW STREAMS (some of its columns)", streams, STREAM_COLUMNS)

    def _consume(self, show: bool = False) -> None:
        """Runs the three consumers; then what the ledger has of them."""
        for name in CONSUMERS:
            self._run(name, show)
        self._touched = 0
        with self._terminal.spinner("read the ledger"):
            newest = self._newest_consumptions()
        self._table("The ledger, streamql.consumptions", list(reversed(newest)), LEDGER_COLUMNS)

    def _newest_consumptions(self) -> list[Row]:
        """The ledger's rows of the consumers' last run, the newest first."""
        return rows_of(self._spark, "ledger")[: len(CONSUMERS)]

    def _prove(self) -> None:
        with self._terminal.spinner("prove"):
            claims = [proofs.replica(self._spark), proofs.daily_delays(self._spark), proofs.audit(self._spark)[0]]
        self._terminal.prove(claims)

    def _table(self, title: str, rows: Sequence[Row], columns: Sequence[str] = (), empty: str = "no rows") -> None:
        names = columns or (rows[0].__fields__ if rows else ())
        self._terminal.table(title, names, [[_shown(row[name]) for name in names] for row in rows], empty)


def _affected(row: Row) -> str:
    """How many rows a DML statement says it touched."""
    operations = ("inserted", "updated", "deleted")
    parts = [
        f"{row[column]:,} {operation}"
        for operation in operations
        if (column := f"num_{operation}_rows") in row and row[column]
    ]
    return ", ".join(parts) or f"{row.num_affected_rows:,} rows"


def _shown(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else str(value)
