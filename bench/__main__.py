"""`python -m bench [NAME…]`: runs benchmarks, prints medians, ratios and targets, writes bench/results/DATE-MACHINE.md and .json."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import streamql
from bench import (
    auto_cdc,
    changes,
    consuming,
    dynamic,
    expectations,
    kafka,
    keys,
    ledger,
    memory,
    object_store,
    planning,
    sizes,
    starts,
    statements,
    tablestore,
)
from bench.context import Context
from bench.databend import benchmarks as databend
from bench.measuring import Benchmark, measure
from bench.report import RESULTS, run_name, table, write

MODULES = (
    changes,
    planning,
    sizes,
    starts,
    statements,
    consuming,
    auto_cdc,
    kafka,
    keys,
    expectations,
    object_store,
    dynamic,
    ledger,
    memory,
    tablestore,
    databend,
)
BENCHMARKS: dict[str, Benchmark] = {b.name: b for m in MODULES for b in m.BENCHMARKS}
SETTINGS = {
    "spark.databricks.delta.changelogV2.enabled": "true",  # Spark's own change queries
    "spark.driver.memory": "6g",
    "spark.streamql.connectors": "kafka,s3",
}


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="benchmarks (all); a name with a * at its end stands for many"
    )
    parser.add_argument("--rows", type=int, default=0, help="rows of each table (each benchmark's own number)")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds (5)")
    parser.add_argument("--data", default="bench-data", help="where the tables are kept (./bench-data)")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and their targets")
    return parser.parse_args()


def chosen(names: list[str]) -> list[Benchmark]:
    """The benchmarks of these names. Raises SystemExit for a name that is none."""
    if not names:
        return list(BENCHMARKS.values())
    found = []
    for name in names:
        matching = [b for n, b in BENCHMARKS.items() if n == name or (name.endswith("*") and n.startswith(name[:-1]))]
        if not matching:
            raise SystemExit(f"there is no benchmark {name}; --list shows those there are")
        found += matching
    return found


def main() -> int:
    """Runs, prints, writes; the exit code says whether every benchmark ran, not whether targets were met."""
    options = arguments()
    if options.list:
        for b in BENCHMARKS.values():
            print(f"{b.name:16} {b.summary}" + "".join(f"\n{'':18}{t.text}" for t in b.targets))
        return 0
    wanted = chosen(options.names)
    context = Context(streamql.session(options.data, SETTINGS), Path(options.data))
    context.spark.sparkContext.setLogLevel("ERROR")
    name = run_name()
    results, failed = [], 0
    for b in wanted:
        start = time.monotonic()
        try:
            result = measure(b, context, options.rows or b.rows, options.rounds)
        except Exception as e:
            failed += 1
            print(f"### {b.name} failed: {type(e).__name__}: {str(e).splitlines()[0][:300]}\n", flush=True)
            continue
        if not result.seconds:
            continue
        results.append(result)
        print(f"{table(result)}\n({time.monotonic() - start:.0f} s)\n", flush=True)
        write(RESULTS, name, results, options.rounds, context.notes)
    for note in context.notes:
        print(note)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
