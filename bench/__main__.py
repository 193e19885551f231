"""`python -m bench [NAME…] [--rows N] [--rounds N]`: every contender on every workload, alternating; medians, ratios, a written record."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import time
from pathlib import Path

from pyspark.sql import SparkSession

import streamql
from bench.contenders import CONTENDERS
from bench.workloads import WORKLOADS, Workload, build

RESULTS = Path(__file__).parent / "results"


def measure(spark: SparkSession, workload: Workload, rows: int, rounds: int) -> list[tuple[str, float, float, float]]:
    """(contender, median, least, greatest) seconds: from the statement to every row read; one round not counted first."""
    built = build(spark, workload, rows)
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for n in range(rounds + 1):
        for name, contender in CONTENDERS.items():
            start = time.perf_counter()
            contender(spark, built).selectExpr("bit_xor(xxhash64(*)) AS h").collect()
            if n:
                times[name].append(time.perf_counter() - start)
    return [(name, statistics.median(t), min(t), max(t)) for name, t in times.items()]


def table(workload: Workload, results: list[tuple[str, float, float, float]]) -> str:
    """A Markdown table of one workload: ratio = the contender's median over ours."""
    ours = results[0][1]
    lines = [
        f"### {workload.name}: {workload.summary}",
        "",
        "| contender | median s | least to greatest | ÷ streamql |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {mid:.2f} | {low:.2f} to {high:.2f} | {mid / ours:.2f} |" for name, mid, low, high in results
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs, prints and writes bench/results/DATE-MACHINE.md."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"workloads: {', '.join(w.name for w in WORKLOADS)} (all)"
    )
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of each table (2,000,000)")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds (5)")
    parser.add_argument("--data", default="bench-data", help="where the tables are kept (./bench-data)")
    options = parser.parse_args()
    spark = streamql.session(options.data, {"spark.databricks.delta.changelogV2.enabled": "true"})
    chosen = [w for w in WORKLOADS if not options.names or w.name in options.names]
    machine = f"{platform.machine()}-{os.cpu_count()}cores"
    today = datetime.datetime.now().astimezone().date().isoformat()
    parts = [f"# {today}, {machine}\n\n{options.rows:,} rows, {options.rounds} rounds, alternating in one process.\n"]
    print(parts[0])
    for workload in chosen:
        parts.append(table(workload, measure(spark, workload, options.rows, options.rounds)))
        print(parts[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{today}-{machine}.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
