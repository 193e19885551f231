"""What was measured, for people (Markdown) and for programs (JSON)."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measuring import WARM_RUNS_MAX, WARM_SECONDS, Result

RESULTS = Path(__file__).parent / "results"


def run_name() -> str:
    """Returns the name of today's results on this type of machine."""
    return f"{datetime.datetime.now().astimezone().date().isoformat()}-{machine()}"


def write_tpch(directory: Path, reports: Sequence[str], scale: float, rounds: int) -> None:
    """Writes the tables of the TPC-H scoreboard, in the place of an earlier run of the day."""
    text = f"# TPC-H at scale factor {scale:g}: refreshes of dynamic tables\n\n{_of_rounds(rounds)}, {machine()}.\n\n"
    (directory / f"{run_name()}-tpch.md").write_text(text + "\n".join(reports), encoding="utf-8")


def _of_rounds(rounds: int) -> str:
    return "Seconds of one round" if rounds == 1 else f"Medians of {rounds} rounds"


def machine() -> str:
    """What type of machine this is, without its name."""
    return f"{platform.machine()}-{os.cpu_count()}cores"


def table(result: Result) -> str:
    """One benchmark as Markdown: medians, spread, ratio to ours, then its targets."""
    b = result.benchmark
    of_rows = f" ({result.rows:,} rows)" if result.rows else ""
    lines = [
        f"### {b.name}: {b.summary}{of_rows}",
        "",
        f"| case | median s | least to greatest | ÷ {result.first} | first run s |",
        "|---|---|---|---|---|",
    ]
    for case, seconds in result.seconds.items():
        spread = f"{min(seconds):.3f} to {max(seconds):.3f}"
        ratio, cold = result.ratio(case, result.first), result.first_run[case]
        lines.append(f"| {case} | {result.median(case):.3f} | {spread} | {ratio:.2f} | {cold:.2f} |")
    lines.append("")
    for target in b.targets:
        value = result.measured(target)
        if value is not None:
            lines.append(f"- {'met' if value <= target.at_most else '**missed**'}: {target.text}; measured {value:.3g}")
    return "\n".join(lines).rstrip() + "\n"


def data(results: Sequence[Result], rounds: int) -> dict[str, Any]:
    """The same as JSON: every second measured."""
    versions = {p: importlib.metadata.version(p) for p in ("pyspark", "delta-spark")}
    return {
        "machine": {"kind": machine(), "python": platform.python_version(), **versions},
        "rounds": rounds,
        "benchmarks": [
            {
                "name": r.benchmark.name,
                "summary": r.benchmark.summary,
                "rows": r.rows,
                "seconds": {case: [round(s, 4) for s in seconds] for case, seconds in r.seconds.items()},
                "first_run": {case: round(s, 4) for case, s in r.first_run.items()},
                "targets": [
                    {"target": t.text, "at_most": t.at_most, "measured": round(value, 4), "met": value <= t.at_most}
                    for t in r.benchmark.targets
                    if (value := r.measured(t)) is not None
                ],
            }
            for r in results
        ],
    }


def write(directory: Path, name: str, results: Sequence[Result], rounds: int, notes: Sequence[str]) -> Path:
    """Writes NAME.md and NAME.json; benchmarks that the JSON file of the same name has and this run has not are kept."""
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}.json"
    new = data(results, rounds)
    texts = {r.benchmark.name: table(r) for r in results}
    if path.exists():
        old = json.loads(path.read_text())
        kept = [b for b in old["benchmarks"] if b["name"] not in texts]
        texts = {b["name"]: b["text"] for b in kept} | texts
        new["benchmarks"] = kept + new["benchmarks"]
    for b in new["benchmarks"]:
        b["text"] = texts[b["name"]]
    new["benchmarks"].sort(key=lambda b: b["name"])
    path.write_text(json.dumps(new, indent=1) + "\n")
    head = (
        f"# {name}\n\nAlternating rounds; ratios are medians of the rounds' ratios. Where first runs are shown, each case was warmed up "
        f"for {WARM_SECONDS:.0f} s (at most {WARM_RUNS_MAX} times) before the rounds that count.\n"
    )
    parts = [head, *(f"{n}\n" for n in notes), *(b["text"] for b in new["benchmarks"])]
    (directory / f"{name}.md").write_text("\n".join(parts))
    return directory / f"{name}.md"
