"""Runs the statement of a consumption again, into a shadow of its target, and shows the difference to
what the target got then. Neither the stream nor the target moves.

The shadow is a new table. It begins as the target was before the statement (a shallow clone), and the
statement reads the changes that the consumption took: stream_consumption('stream', n). Other tables
are read as they are now. --statement runs another statement in its place, such as a corrected MERGE,
which names the stream and the target as usual.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.features.replay.shadow import Replayed

EPILOG = """\
examples:
  streamql replay shop.orders_stream --into shop.replayed              the newest consumption
  streamql replay shop.orders_stream --consumption 7 --into shop.replayed
  streamql replay shop.orders_stream --into shop.fixed --statement "MERGE INTO shop.orders_copy …"
  streamql replay shop.orders_stream --into shop.fixed --statement fixed.sql

SELECT sequence, ended_at, operation, target FROM streamql.consumptions lists consumptions.

exit codes:
  0    the shadow has the rows that the target got
  1    it has others, or the statement failed
  2    the command line is wrong, or there is no data directory
  130  cut short by Ctrl-C: DROP the shadow, and run the command again
"""

_HEADER = (
    "stream",
    "consumption",
    "target",
    "target_version",
    "shadow",
    "verdict",
    "row_count",
    "rows_missing",
    "rows_unexpected",
)


_NUMERIC = frozenset(("consumption", "target_version", "row_count", "rows_missing", "rows_unexpected"))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    parser.add_argument("stream", metavar="STREAM", help="the stream")
    parser.add_argument(
        "--consumption",
        metavar="N",
        type=int,
        help="the number of the consumption (sequence in the ledger); the newest",
    )
    parser.add_argument("--into", metavar="TABLE", required=True, help="the shadow, a new table")
    parser.add_argument("--target", metavar="TABLE", help="of a transaction: which of its targets")
    parser.add_argument("--statement", metavar="SQL|FILE", help="another statement: its text, or a file with it")


def run(spark: SparkSession, options: Options) -> int:
    """Replays, and prints the result. Raises what `shadow.replay` raises."""
    from streamql.console.render import records
    from streamql.console.render.screen import Screen
    from streamql.console.sql.embedded import EmbeddedSession
    from streamql.console.sql.named_objects import use_database
    from streamql.console.sql.progress import Progress
    from streamql.delta.names import qualify
    from streamql.dialect import parse_name
    from streamql.engine.reads import need_stream
    from streamql.features.replay.shadow import entry_to_replay, replay
    from streamql.names import quote

    asked = options.arguments
    use_database(spark, options.database)
    state = need_stream(spark, parse_name(asked.stream))
    entry = entry_to_replay(spark, state, asked.consumption, asked.target)
    into = qualify(spark, parse_name(asked.into))
    if options.database is None and entry.target is not None:  # in which the statement's names were, most likely
        use_database(spark, ".".join(map(quote, parse_name(entry.target)[:-1])))
    with Progress(EmbeddedSession(spark), Screen(silent=options.silent)).of_statement():
        done = replay(spark, state, entry, into, _statement(asked.statement))
    verdict = "EQUAL" if done.is_equal else "DIFFERENT"
    if options.output == "table":
        records.say(_lines(str(state.name), done, verdict))
    else:
        versions = (entry.sequence, entry.target, entry.target_version, str(done.shadow))
        row = (str(state.name), *versions, verdict, done.rows, done.missing, done.unexpected)
        numeric = [name in _NUMERIC for name in _HEADER]
        records.write(options.output, _HEADER, numeric, [row])
    sys.stdout.flush()
    return 0 if done.is_equal else 1


def _statement(given: str | None) -> str | None:
    """Returns the statement of --statement: the text of a file of that name, or the text itself. None: there is none."""
    if given is None:
        return None
    path = Path(given) if len(given) < 256 and "\n" not in given else None
    text = path.read_text() if path is not None and path.is_file() else given
    return text.strip().rstrip(";").strip()


def _lines(stream: str, done: Replayed, verdict: str) -> list[str]:
    from streamql.dialect import parse_name
    from streamql.errors import counted
    from streamql.names import Name

    entry = done.entry
    target = Name.of(parse_name(entry.target or ""))
    took = "" if done.took_then is None else f", of which its statement took {_rows(done.took_then)}"
    lines = [
        f"consumption {entry.sequence} of {stream} showed {_rows(done.took)}{took}",
        f"{done.shadow} has {counted(done.rows, 'row')}; the statement made version {entry.target_version} of {target} then",
        f"{verdict}: {counted(done.missing, 'row')} missing, {done.unexpected:,} unexpected",
    ]
    return lines + [f"  only in the {where}: {row}" for where, row in done.samples]


def _rows(changes: Mapping[str, int]) -> str:
    return ", ".join(f"{rows:,} {change_type}" for change_type, rows in sorted(changes.items())) or "nothing"
