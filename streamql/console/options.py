"""The command line as data. Nothing is imported here that would slow `--help` down."""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from streamql.console import commands as command_table
from streamql.console.commands import commands
from streamql.console.usage import Parser, unexpected
from streamql.errors import StreamqlError
from streamql.feature import Command
from streamql.settings import CONNECTORS, check

FORMATS = ("table", "csv", "tsv", "json", "markdown")
MAX_ROWS_DEFAULT = 1000
DATA_DEFAULT = "streamql-data"
DATA_VARIABLE, DATABASE_VARIABLE = "STREAMQL_DATA", "STREAMQL_DATABASE"
CONNECT_VARIABLE = "STREAMQL_CONNECT"
"""Environment variables: what --data, --database and --connect are if they are not given. An empty one counts as unset. The URL of a
server may hold a token, which a command line would show to other users."""
RUN_VARIABLE = "STREAMQL_RUN"
"""Environment variable: the name of the run of an orchestrator that the command is a part of."""

DESCRIPTION = """\
Table streams over Delta Lake, in SQL: SELECT shows the net row changes of a table since
an offset, and the DML statement that reads them moves the offset, exactly once."""

EPILOG = f"""\
commands (streamql help COMMAND):
{command_table.table()}

examples:
  streamql                                           the shell: a prompt with completion and history; \\help there
  streamql -i setup.sql                              the same, after a script
  streamql -e 'SHOW STREAMS'                         one statement
  streamql -e 'USE sales; SELECT * FROM orders_st'   several
  streamql -f nightly.sql --data /srv/lake           a script: comments, BEGIN ... END
  streamql < nightly.sql                             the same, from a pipe
  streamql --output csv -e 'SELECT * FROM t' > t.csv
  streamql -S --output json -f report.sql | jq .total
  streamql streams                                   the status of all streams
  streamql run merge.sql --every 1min                a job without a service

output (--output), to stdout; a terminal's width makes long lines of a table wrap, a pipe's none:
  table      a frame, at most --max-rows rows, NULL as NULL; EXPLAIN and SHOW CREATE as plain text
  csv        RFC 4180 quoting, with a header, lines end in LF; NULL is empty, an empty string is ""
  tsv        with a header; \\t \\n \\r \\\\ in values are written as escapes; NULL as NULL
  json       one object a row, a line each; decimals exact, binary in base64, NaN and Infinity as strings
  markdown   a table to paste
All but table are written row by row, without limit. Structs, arrays and maps are JSON in csv, tsv and
json, {{a, b}} in the others. Binary is hexadecimal, except in json. Counts of DML statements, warnings
and errors go to stderr: stdout holds rows of queries (SELECT, SHOW, DESC, EXPLAIN ...) and nothing else.

environment:
  {DATA_VARIABLE}      what --data is if it is not given
  {DATABASE_VARIABLE}  what --database is if it is not given
  {CONNECT_VARIABLE}   what --connect is for SQL, if it is not given
  {RUN_VARIABLE}       a name for this run, which the ledger keeps with what it consumes
  STREAMQL_CACHE     where jars and class data are kept (~/.cache/streamql); see streamql help prepare
  JAVA_HOME          the Java to use (else the first on PATH)

exit codes:
  0    all statements succeeded
  1    a statement failed, or Spark did not start; the error names the statement's number and line
  2    the command line or a file is wrong; nothing was run
  130  cancelled with Ctrl-C          141  the reader of the output went away (| head)
Commands have some of their own: has-data answers with 0 or 1, and an error is 2 there.
"""


@dataclass(frozen=True)
class Input:
    """SQL text of an -e, the path of an -f, or standard input."""

    type: Literal["text", "file", "stdin"]
    value: str = ""


@dataclass(frozen=True)
class Options:
    """What the command line says. `command` None: SQL; `arguments`: all that was given, a command's own options among them;
    `max_rows` 0: all. `is_new`: there is no lakehouse in `data` yet, so a session makes one. `init`: what runs before `inputs`, or before
    the shell; `connect`: the URL of a server, empty for a session here. `consumptions`: the file for what the run
    consumed; `run`: the run's name in the ledger, empty if it has none."""

    command: Command | None = None
    init: tuple[Input, ...] = ()
    inputs: tuple[Input, ...] = ()
    connect: str = ""
    data: Path = Path(DATA_DEFAULT)
    database: str | None = None
    is_new: bool = False
    output: str = "table"
    silent: bool = False
    verbose: bool = False
    continue_on_error: bool = False
    max_rows: int = MAX_ROWS_DEFAULT
    consumptions: Path | None = None
    run: str = ""
    conf: dict[str, str] = field(default_factory=dict)
    arguments: argparse.Namespace = field(default_factory=argparse.Namespace)


def parse(argv: Sequence[str] | None = None) -> Options:
    """Returns the options in `argv` (None: of this process). Raises SystemExit: 0 for --help and --version, 2 for what is wrong."""
    parser = main_parser()
    head, name, tail = command_table.split(sys.argv[1:] if argv is None else argv, _VALUED)
    given = parser.parse_args(head)
    if given.version:
        from streamql.console.versions import version_line

        print(version_line())
        parser.exit()
    if name == "help":  # as other programs have it
        if not tail:
            parser.print_help()
            parser.exit()
        name, tail = tail[0], ["--help"]
        asked = commands().get(name)
        if asked is not None and asked.takes_all:  # behind its name, --help is the other program's
            command_parser(asked).print_help()
            parser.exit()
    command = None if name is None else commands().get(name)
    if name is not None and command is None:
        parser.error(unexpected(name, commands()))
    inputs: list[Input] = given.inputs or []
    if command is not None:
        if inputs or given.init:
            parser.error(f"streamql {command.name} takes no SQL")
        if given.connect:
            parser.error(f"streamql {command.name} does not work over --connect")
        if command.takes_all:
            given.rest = list(tail)
        else:
            command_parser(command).parse_args(tail, given)
        _refuse(parser, given, f"streamql {command.name}", (*command.refuses, "continue_on_error", "consumptions"))
    else:
        _take_server(parser, given)
    if inputs.count(Input("stdin")) > 1:
        parser.error("-f - is given more than once")
    return Options(
        command=command,
        init=tuple(given.init or ()),
        connect=given.connect,
        inputs=tuple(inputs),
        data=_data(parser, given.data),
        database=given.database,
        output=given.output,
        silent=given.silent,
        verbose=given.verbose,
        continue_on_error=given.continue_on_error,
        max_rows=given.max_rows,
        consumptions=given.consumptions,
        run=os.environ.get(RUN_VARIABLE) or (str(uuid.uuid4()) if given.consumptions else ""),
        conf=_conf(given),
        arguments=given,
    )


def _take_server(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Takes the server of the environment, unless a server or a directory is named. Ends with a usage error for both of them."""
    if given.data == parser.get_default("data"):
        given.connect = given.connect or os.environ.get(CONNECT_VARIABLE, "")
    if given.connect:
        _refuse(parser, given, "--connect, whose data and settings are the server's,", ("data", "conf", "with"))


def _data(parser: argparse.ArgumentParser, given: str) -> Path:
    """Returns the directory of --data."""
    from streamql.extension.metastore import data_directory

    try:
        return data_directory(given)
    except StreamqlError as e:
        parser.error(f"{e.message}\nhint: {e.hint}")


def _conf(given: argparse.Namespace) -> dict[str, str]:
    """Returns the settings of --conf and --with."""
    connectors: str = getattr(given, "with")
    return dict(given.conf) | ({CONNECTORS.key: connectors} if connectors else {})


def short_help() -> str:
    """Returns what the command prints at a terminal if no SQL is given."""
    return (
        "streamql at a terminal is a shell; here stdout is not a terminal. It runs SQL statements:\n"
        "  streamql -e 'SHOW STREAMS'     statements on the command line\n"
        "  streamql -f script.sql         a script\n"
        "  streamql < script.sql          a pipe\n"
        "streamql --help shows everything else."
    )


def _refuse(parser: argparse.ArgumentParser, given: argparse.Namespace, who: str, names: Sequence[str]) -> None:
    """Ends with a usage error where an option was given that would do nothing."""
    for name in names:
        if getattr(given, name) != parser.get_default(name):
            parser.error(f"{who} takes no --{name.replace('_', '-')}")


def _common(*, suppressed: bool, without: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Returns the options that may stand before a command and behind it. `suppressed`: they leave alone what was said before."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)

    def default(value: object) -> object:
        return argparse.SUPPRESS if suppressed else value

    def add(*names: str, **settings: Any) -> None:
        if names[-1].removeprefix("--") not in without:
            parser.add_argument(*names, **settings)

    add(
        "--data",
        metavar="DIR",
        type=path_text,
        default=default(os.environ.get(DATA_VARIABLE) or DATA_DEFAULT),
        help=f"where tables and streams live (${DATA_VARIABLE}, else ./{DATA_DEFAULT})",
    )
    add(
        "--database",
        metavar="DB",
        default=default(os.environ.get(DATABASE_VARIABLE) or None),
        help=f"USE this database first (${DATABASE_VARIABLE})",
    )
    add("--output", choices=FORMATS, default=default("table"), help="the format of rows (table)", metavar="FORMAT")
    add("-S", "--silent", action="store_true", default=default(False), help="nothing but rows of queries, and errors")
    add(
        "-v",
        "--verbose",
        action="store_true",
        default=default(False),
        help="Spark's log, and the stack traces of errors",
    )
    add(
        "--conf",
        metavar="K=V",
        action="append",
        type=_setting,
        default=default([]),
        help="a Spark setting; may be repeated",
    )
    add(
        "--with",
        metavar="NAMES",
        type=_connectors,
        default=default(""),
        help="optional parts to load, with commas between (spark.streamql.connectors)",
    )
    return parser


_VALUED = frozenset(
    (
        "-e",
        "--execute",
        "-f",
        "--file",
        "--data",
        "--database",
        "--output",
        "--max-rows",
        "--conf",
        "--with",
        "-i",
        "--init",
        "--connect",
        "--consumptions",
    )
)
"""The options whose value is the next argument."""


def command_parser(command: Command) -> argparse.ArgumentParser:
    """Return the parser of what stands behind the command's name."""
    return command_table.parser(command, _common(suppressed=True, without=command.refuses))


def main_parser() -> argparse.ArgumentParser:
    """Return the parser of what stands before a command, or without one."""
    parser = Parser(
        prog="streamql",
        usage="streamql [options] [-i FILE]\n       streamql [options] (-e SQL | -f FILE | < FILE)\n       streamql [options] COMMAND …",
        description=DESCRIPTION,
        epilog=EPILOG,
        parents=[_common(suppressed=False)],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-e", "--execute", dest="inputs", metavar="SQL", action="append", type=_text, help="run SQL; may be repeated")
    add("-f", "--file", dest="inputs", metavar="FILE", action="append", type=_file, help="run a script; - is stdin")
    add(
        "-i",
        "--init",
        metavar="FILE",
        action="append",
        type=_init,
        help="run a script first, then the shell, or -e and -f",
    )
    add("--connect", metavar="URL", default="", help="use a running server, sc://HOST:PORT, instead of a session here")
    add(
        "--max-rows",
        metavar="N",
        type=_count,
        default=MAX_ROWS_DEFAULT,
        help="rows shown of a table (%(default)s); 0 shows all",
    )
    add(
        "--consumptions",
        metavar="FILE",
        type=lambda text: Path(path_text(text)).expanduser(),
        help=f"write what the statements consumed into a file, as JSON lines; with ${RUN_VARIABLE}, what its run consumed",
    )
    stops = parser.add_mutually_exclusive_group()
    stops.add_argument("--continue-on-error", action="store_true", help="run the statements after one that failed")
    stops.add_argument("--stop-on-error", dest="continue_on_error", action="store_false", help="do not (the default)")
    add("--version", action="store_true", help="show the versions and exit")
    return parser


def _text(value: str) -> Input:
    if not is_utf8(value):
        raise argparse.ArgumentTypeError("the SQL is not UTF-8")
    return Input("text", value)


def is_utf8(text: str) -> bool:
    """Returns whether the text can be written as UTF-8: bytes of a terminal or an argument that were not UTF-8 are lone surrogates in
    it."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _file(value: str) -> Input:
    return Input("stdin") if value == "-" else _init(value)


def _init(value: str) -> Input:
    path_text(value)
    return Input("file", value)


def path_text(value: str) -> str:
    """Returns the path, where ~name in it is a user's home directory."""
    try:
        Path(value).expanduser()
    except RuntimeError as e:
        raise argparse.ArgumentTypeError(f"{value}: {e}") from None
    return value


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    try:
        check({key.strip(): value.strip()})
    except StreamqlError as e:
        raise argparse.ArgumentTypeError(f"{e.message}: {e.hint}") from None
    return key.strip(), value.strip()


def _connectors(text: str) -> str:
    from streamql.errors import StreamqlError
    from streamql.extension.connectors import parse_connectors

    try:
        return ",".join(connector.name for connector in parse_connectors(text))
    except StreamqlError as e:
        raise argparse.ArgumentTypeError(f"{e.message}: {e.hint}") from None


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)
