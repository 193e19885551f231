"""Prints a script of Snowflake, Databend or ClickZetta as Spark SQL with streamql's statements.

Each statement keeps its place and its comments. A statement that has no translation stays in its
place as a comment, with the reason and what to use instead. Nothing is run: Spark is not started.
"""

from __future__ import annotations

import argparse
import sys

from streamql.console.options import Input, Options, path_text

COMPLETE, INCOMPLETE, USAGE = 0, 1, 2
SYSTEMS = ("snowflake", "databend", "clickzetta")

EPILOG = """\
examples:
  streamql translate --from snowflake etl.sql > etl-spark.sql
  streamql translate --from databend - < etl.sql | less
  streamql translate --from clickzetta etl.sql | streamql -f -          translate, and run

what the lines mean:
  -- note: ...             the statement below was translated, and something about it differs
  -- not translated: ...   the statement below, in comments, has no counterpart
  -- instead: ...          what to use in its place

Streams, change queries (CHANGES, AT, BEFORE), metadata columns and dynamic tables are streamql's
own and stay as they are. sqlglot translates the rest: types, functions, DDL, DML, queries.
The tables that a stream or a dynamic table reads get change tracking. A task becomes a comment with
the streamql run line that does the same, and with its statements translated.
Read the translation before you run it: functions of the same name may differ between the systems.
The counts go to stderr; -S leaves them out.

exit codes:
  0    every statement was translated, with or without notes
  1    some statement was not translated
  2    the command line or the file is wrong
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    parser.add_argument(
        "--from", dest="system", required=True, choices=SYSTEMS, help="the system that the script is written for"
    )
    parser.add_argument("file", metavar="FILE", type=path_text, help="the script; - is stdin")


def run(options: Options) -> int:
    """Prints the translation to stdout and the counts to stderr; COMPLETE, INCOMPLETE or USAGE."""
    from streamql.console.sql.inputs import UsageError, read
    from streamql.errors import counted
    from streamql.features.translate.model import Outcome, System
    from streamql.features.translate.script import translate

    file = options.arguments.file
    try:
        (text,) = read([Input("stdin") if file == "-" else Input("file", file)])
    except UsageError as e:
        print(f"error: {e}", file=sys.stderr)
        return USAGE
    translation = translate(text.content, System(options.arguments.system))
    sys.stdout.write(translation.text)
    sys.stdout.flush()
    counts = [f"{translation.count(outcome)} {outcome.value}" for outcome in Outcome]
    if not options.silent:
        print(f"{counted(len(translation.pieces), 'statement')}: {', '.join(counts)}", file=sys.stderr)
    return INCOMPLETE if translation.count(Outcome.REFUSED) else COMPLETE
