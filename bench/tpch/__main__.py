"""`python -m bench.tpch`: the 22 queries of TPC-H as dynamic tables, refreshed after changes of 0.1, 1 and 5 % of the rows: what AUTO
chooses, and how long it takes beside the full refresh. Prints a table for each share; those of all queries go into bench/results."""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

import streamql
from bench.report import RESULTS, write_tpch
from bench.tpch.data import SCHEMA, change, load

MODES = ("FULL", "INCREMENTAL", "AUTO")
SETTINGS = {"spark.driver.memory": "6g", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}


@dataclass
class Score:
    """What the refreshes of one query took. `seconds`: by mode asked for; `chosen`: what AUTO chose; `why`: why not INCREMENTAL."""

    query: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)
    why: str = ""
    verdicts: set[str] = field(default_factory=set)

    def median(self, mode: str) -> float | None:
        """The middle of the seconds of a mode. None: it was refused."""
        return statistics.median(self.seconds[mode]) if mode in self.seconds else None

    @property
    def is_right(self) -> bool:
        """Whether AUTO took the faster mode, or one that takes at most a tenth longer."""
        full, incremental, auto = (self.median(m) for m in MODES)
        assert full is not None
        assert auto is not None
        best = full if incremental is None else min(full, incremental)
        taken = full if "FULL" in self.chosen or incremental is None else incremental
        return taken <= 1.1 * best


def queries() -> dict[int, str]:
    """The queries by their numbers."""
    text = Path(__file__).with_name("queries.sql").read_text()
    parts = re.split(r"^-- (\d+)\n", text, flags=re.MULTILINE)
    return {int(n): sql.strip() for n, sql in zip(parts[1::2], parts[2::2], strict=True)}


def run(spark: SparkSession, sql: str) -> list[Mapping[str, object]]:
    """The rows of a statement."""
    return [row.asDict() for row in spark.sql(sql).collect()]


def create(spark: SparkSession, chosen: Mapping[int, str]) -> dict[int, Score]:
    """Makes a dynamic table of each query and mode; INCREMENTAL is left out where CREATE refuses it."""
    scores = {}
    for n, query in chosen.items():
        scores[n] = Score(n)
        for mode in MODES:
            name = f"q{n}_{mode.lower()}"
            started = time.perf_counter()
            try:
                run(spark, f"CREATE OR REPLACE DYNAMIC TABLE {name} REFRESH_MODE = {mode} AS {query}")
            except Exception as e:
                if mode != "INCREMENTAL":
                    raise
                said = str(e).splitlines()[0]
                found = re.search(r"INCREMENTAL: the query (.*), so refreshes", said)
                scores[n].why = said if found is None else f"it {found[1]}"
                continue
            print(f"{name}: created in {time.perf_counter() - started:.1f} s", flush=True)
    return scores


def refresh(spark: SparkSession, score: Score, mode: str, counted: bool) -> None:
    """Refreshes the table of one mode."""
    name = f"q{score.query}_{mode.lower()}"
    started = time.perf_counter()
    (row,) = run(spark, f"REFRESH DYNAMIC TABLE {name}")
    seconds = time.perf_counter() - started
    if counted:
        score.seconds.setdefault(mode, []).append(seconds)
        if mode == "AUTO" and row["mode"] is not None:
            score.chosen.add(str(row["mode"]))


def measure(
    spark: SparkSession, scores: Mapping[int, Score], share: float, number: int, *, with_dimensions: bool, counted: bool
) -> None:
    """Changes the tables and refreshes each dynamic table once. The first one of a query also reads the lists of the new files. So each
    query has another order of modes, and every other round is in reverse: then AUTO comes as often before FULL as after it."""
    change(spark, share, number, with_dimensions=with_dimensions)
    for n, score in scores.items():
        order = [MODES[(n + i) % len(MODES)] for i in range(len(MODES))]
        for mode in order if number % 2 else reversed(order):
            if mode != "INCREMENTAL" or not score.why:
                refresh(spark, score, mode, counted)
        if counted:
            score.verdicts.add(str(run(spark, f"VERIFY DYNAMIC TABLE q{n}_auto")[0]["verdict"]))
            if not score.why:
                score.verdicts.add(str(run(spark, f"VERIFY DYNAMIC TABLE q{n}_incremental")[0]["verdict"]))
        print(f"  q{n}: " + ", ".join(f"{m} {s[-1]:.1f} s" for m, s in score.seconds.items()), flush=True)


def report(scores: Mapping[int, Score], share: float, *, with_dimensions: bool) -> str:
    """A table as Markdown."""
    tables = "orders, lineitem, customer and partsupp" if with_dimensions else "orders and lineitem"
    lines = [
        f"### {share:.1%} of the rows of {tables} changed",
        "",
        "| query | full s | incremental s | AUTO s | AUTO ÷ full | full ÷ incremental | AUTO chose | rows | why not incremental |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for n, score in scores.items():
        full, incremental, auto = (score.median(m) for m in MODES)
        assert full is not None
        assert auto is not None
        by = "" if incremental is None else f"{incremental:.1f}"
        gain = "" if incremental is None else f"{full / incremental:.1f}"
        chosen = "/".join(sorted(score.chosen)) or "no change"
        verdict = "/".join(sorted(score.verdicts))
        cells = (n, f"{full:.1f}", by, f"{auto:.1f}", f"{auto / full:.2f}", gain, chosen, verdict, score.why)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    totals = {m: sum(s.median(m) or s.median("FULL") or 0 for s in scores.values()) for m in MODES}
    right = sum(s.is_right for s in scores.values())
    equal = sum(s.verdicts == {"EQUAL"} for s in scores.values())
    ratio = totals["AUTO"] / totals["FULL"]
    lines += ["", f"Summed: full {totals['FULL']:.1f} s, AUTO {totals['AUTO']:.1f} s ({ratio:.2f} x full)."]
    lines += [f"AUTO chose right for {right} of {len(scores)}; equal to the query: {equal}.", ""]
    return "\n".join(lines)


def main() -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.tpch", description=__doc__)
    parser.add_argument("queries", nargs="*", type=int, help="numbers of queries (all)")
    parser.add_argument("--scale", type=float, default=1.0, help="the scale factor: GB of data (1)")
    parser.add_argument(
        "--shares", type=float, nargs="+", default=[0.001, 0.01, 0.05], help="changed shares of the rows"
    )
    parser.add_argument(
        "--rounds", type=int, default=2, help="counted rounds of each share; half of them in reverse (2)"
    )
    parser.add_argument(
        "--facts", action="store_true", help="change orders and lineitem only, as the refresh functions of TPC-H do"
    )
    parser.add_argument("--data", default="bench-data", help="where the tables are kept (./bench-data)")
    options = parser.parse_args()
    spark = streamql.session(options.data, SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    load(spark, options.scale, Path(options.data))
    all_queries = queries()
    chosen = {n: all_queries[n] for n in options.queries or all_queries}
    scores = create(spark, chosen)
    number = int(time.time())  # other rows than those of the run before
    with_dimensions = not options.facts
    reports: list[str] = []
    measure(spark, scores, 0.001, number, with_dimensions=with_dimensions, counted=False)
    for share in options.shares:
        for score in scores.values():
            score.seconds, score.chosen, score.verdicts = {}, set(), set()
        for _ in range(options.rounds):
            number += 1
            measure(spark, scores, share, number, with_dimensions=with_dimensions, counted=True)
        reports.append(report(scores, share, with_dimensions=with_dimensions))
        print(f"\n{reports[-1]}", flush=True)
        if len(chosen) == len(all_queries):
            write_tpch(RESULTS, reports, options.scale, options.rounds)
    assert spark.catalog.currentDatabase() == SCHEMA


if __name__ == "__main__":
    main()
