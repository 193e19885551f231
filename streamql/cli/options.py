"""The command line as data. Nothing is imported here that would slow `--help` down."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

FORMATS = ("table", "csv", "tsv", "json", "markdown")
MAX_ROWS_DEFAULT = 1000
DATA_DEFAULT = "streamql-data"

DESCRIPTION = """\
Table streams over Delta Lake, in SQL: SELECT shows the net row changes of a table since
a bookmark, and the DML statement that reads them moves the bookmark, exactly once."""

EPILOG = """\
examples:
  streamql -e 'SHOW STREAMS'                         one statement
  streamql -e 'USE sales; SELECT * FROM orders_st'   several
  streamql -f nightly.sql --data /srv/lake           a script: comments, BEGIN ... END
  streamql < nightly.sql                             the same, from a pipe
  streamql --output csv -e 'SELECT * FROM t' > t.csv
  streamql -S --output json -f report.sql | jq .total

output (--output), to stdout; a terminal's width makes long lines of a table wrap, a pipe's none:
  table      a frame, at most --max-rows rows, NULL as NULL; EXPLAIN and SHOW CREATE as plain text
  csv        RFC 4180 quoting, with a header, lines end in LF; NULL is empty, an empty string is ""
  tsv        with a header; \\t \\n \\r \\\\ in values are written as escapes; NULL as NULL
  json       one object a row, a line each; decimals exact, binary in base64, NaN and Infinity as strings
  markdown   a table to paste
All but table are written row by row, without limit. Structs, arrays and maps are JSON in csv, tsv and
json, {a, b} in the others. Binary is hexadecimal, except in json. Counts of DML statements, warnings
and errors go to stderr: stdout holds rows of queries (SELECT, SHOW, DESC, EXPLAIN ...) and nothing else.

exit codes:
  0    all statements succeeded
  1    a statement failed, or Spark did not start; the error names the statement's number and line
  2    the command line or a file is wrong; nothing was run
  130  cancelled with Ctrl-C          141  the reader of the output went away (| head)
"""


@dataclass(frozen=True)
class Input:
    """SQL text of an -e, the path of an -f, or standard input."""

    kind: Literal["text", "file", "stdin"]
    value: str = ""


@dataclass(frozen=True)
class Options:
    """What the command line says. `max_rows` 0: all."""

    command: Literal["run", "conf"] = "run"
    inputs: tuple[Input, ...] = ()
    data: Path = Path(DATA_DEFAULT)
    database: str | None = None
    output: str = "table"
    silent: bool = False
    verbose: bool = False
    continue_on_error: bool = False
    max_rows: int = MAX_ROWS_DEFAULT
    conf: dict[str, str] = field(default_factory=dict)


def parse(argv: Sequence[str] | None = None) -> Options:
    """The options in `argv` (None: of this process). Raises SystemExit: 0 for --help and --version, 2 for what is wrong."""
    parser = _parser()
    given = parser.parse_args(argv)
    if given.version:
        print(version_line())
        parser.exit()
    inputs: list[Input] = given.inputs or []
    if given.command not in (None, "conf"):
        hint = f" (a script is given with -f {given.command})" if _looks_like_file(given.command) else ""
        parser.error(f"unexpected argument {given.command!r}{hint}")
    if given.command == "conf" and inputs:
        parser.error("streamql conf takes no SQL")
    if inputs.count(Input("stdin")) > 1:
        parser.error("-f - is given more than once")
    return Options(
        command=given.command or "run",
        inputs=tuple(inputs),
        data=Path(given.data),
        database=given.database,
        output=given.output,
        silent=given.silent,
        verbose=given.verbose,
        continue_on_error=given.continue_on_error,
        max_rows=given.max_rows,
        conf=dict(given.conf),
    )


def short_help() -> str:
    """What a person sees who gives no SQL at a terminal."""
    return (
        "streamql runs SQL statements:\n"
        "  streamql -e 'SHOW STREAMS'     statements on the command line\n"
        "  streamql -f script.sql         a script\n"
        "  streamql < script.sql          a pipe\n"
        "streamql --help shows everything else."
    )


def version_line() -> str:
    """The versions of all that answers."""
    parts = [f"{name} {_version(package)}" for name, package in (("Spark", "pyspark"), ("Delta Lake", "delta-spark"))]
    return f"streamql {_version('streamql')} ({', '.join(parts)})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "0.0.0" if package == "streamql" else "not installed"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamql",
        usage="streamql [options] (-e SQL | -f FILE | < FILE)\n       streamql conf",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "command",
        nargs="?",
        metavar="conf",
        help="print the settings that give any Spark the extension, for its spark-defaults.conf",
    )
    add("-e", "--execute", dest="inputs", metavar="SQL", action="append", type=_text, help="run SQL; may be repeated")
    add("-f", "--file", dest="inputs", metavar="FILE", action="append", type=_file, help="run a script; - is stdin")
    add("--data", metavar="DIR", default=DATA_DEFAULT, help="where tables and streams live (./%(default)s)")
    add("--database", metavar="DB", help="USE this database first")
    add("--output", choices=FORMATS, default="table", help="the format of rows (%(default)s)", metavar="FORMAT")
    add(
        "--max-rows",
        metavar="N",
        type=_count,
        default=MAX_ROWS_DEFAULT,
        help="rows shown of a table (%(default)s); 0 shows all",
    )
    add("-S", "--silent", action="store_true", help="nothing but rows of queries, and errors")
    add("-v", "--verbose", action="store_true", help="Spark's log, and the stack traces of errors")
    add("--conf", metavar="K=V", action="append", type=_setting, default=[], help="a Spark setting; may be repeated")
    stops = parser.add_mutually_exclusive_group()
    stops.add_argument("--continue-on-error", action="store_true", help="run the statements after one that failed")
    stops.add_argument("--stop-on-error", dest="continue_on_error", action="store_false", help="do not (the default)")
    add("--version", action="store_true", help="show the versions and exit")
    return parser


def _text(value: str) -> Input:
    return Input("text", value)


def _file(value: str) -> Input:
    return Input("stdin") if value == "-" else Input("file", value)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key.strip(), value.strip()


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


def _looks_like_file(text: str) -> bool:
    return text.endswith((".sql", ".hql")) or Path(text).is_file()
