"""What is wrong with streams, dynamic tables, claims and offsets, and what to do about it.

Looked at: whether each stream can be read; whether it is about to go stale; claims that a dead
process left behind; transactions that stopped half way; whether each dynamic table can be refreshed
and read, whether only refreshes wrote it, and whether it is late; and whether the catalog fits
together.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import TYPE_CHECKING

from streamql.console.options import Options
from streamql.console.render import records
from streamql.errors import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.engine.doctor import Finding

EPILOG = """\
examples:
  streamql doctor                        findings, and what to type
  streamql doctor --fix                  and repairs what needs no choice
  streamql doctor --deep                 reads tables, too: are the keys of streams unique?
  streamql doctor --output json          one object a finding

exit codes:
  0  no error is left (there may be warnings)
  1  an error is left
  2  the command line is wrong, or there is no data directory
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "--fix", action="store_true", help="repair what needs no choice, such as claims of dead processes"
    )
    parser.add_argument(
        "--deep", action="store_true", help="also check what takes reading all rows, such as whether keys are unique"
    )


def run(spark: SparkSession, options: Options) -> int:
    """Examines, repairs with --fix, prints the findings to stdout, a record each unless --output is table. 1: an error is left."""
    from streamql.engine.doctor import Finding, examine

    findings = examine(spark, fix=options.arguments.fix, deep=options.arguments.deep)
    if options.output == "table":
        records.say(_lines(findings))
    else:
        names = [f.name for f in fields(Finding)]
        records.write(options.output, names, [False] * len(names), [astuple(f) for f in findings])
    return int(any(f.severity == "error" and not f.is_fixed for f in findings))


def _lines(findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return ["every stream and dynamic table can be read, and no claim is left behind"]
    lines = []
    for f in findings:
        lines.append(f"{'fixed' if f.is_fixed else f.severity}: {f.subject} [{f.code}]")
        lines += [f"  {f.what}", f"  {'done' if f.is_fixed else 'to do'}: {f.remedy}"]
    left = [f for f in findings if not f.is_fixed]
    errors = sum(f.severity == "error" for f in left)
    lines.append(
        f"{counted(errors, 'error')}, {counted(len(left) - errors, 'warning')}, {len(findings) - len(left)} fixed"
    )
    return lines
