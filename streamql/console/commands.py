"""The commands beside SQL: `streamql NAME`. Each is a module, imported only when it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from streamql.console.usage import Parser
from streamql.feature import Command, features


def _own(name: str, summary: str, **more: Any) -> Command:
    return Command(name, summary, f"streamql.cli.commands.{name.replace('-', '_')}", **more)


_FIRST = (
    _own(
        "conf",
        "print the settings that give any Spark the extension, for its spark-defaults.conf",
        in_session=False,
        refuses=("data", "database", "output", "conf"),
    ),
    _own(
        "prepare",
        "fetch and build now what starts need: for images, and for quicker starts",
        in_session=False,
        refuses=("data", "database", "output"),
    ),
    _own(
        "doctor",
        "check every stream and claim, and say what is wrong and what to do",
        in_session=True,
        reads_only=True,
        is_brief=True,
        refuses=("database",),
    ),
    _own(
        "streams",
        "every stream: lag, backlog, staleness, last consumption, last error",
        in_session=True,
        reads_only=True,
        is_brief=True,
    ),
    _own(
        "has-data",
        "whether a stream has data, as an exit code: 0 yes, 1 no, 2 error",
        in_session=True,
        reads_only=True,
        is_brief=True,
        failed=2,
    ),
    _own("watch", "the same as streams, live", in_session=True, reads_only=True),
    _own("report", "a page of HTML on lag, consumption, lineage and staleness", in_session=True, reads_only=True),
    _own("run", "run a script once, or every so often, or when a stream has data", in_session=True),
    _own("scheduler", "run tasks and refresh dynamic tables when they are due", in_session=True, reads_only=True),
)
_LAST = (
    _own(
        "spark-sql",
        "Spark's own bin/spark-sql over the data directory; takes all of its arguments",
        in_session=False,
        takes_all=True,
        refuses=("output",),
    ),
    _own(
        "server",
        "Spark's Thrift server (beeline, JDBC, PyHive), and Spark Connect with --connect",
        in_session=False,
        refuses=("database", "output"),
    ),
    _own(
        "completion",
        "print a script that completes this command in bash or zsh",
        in_session=False,
        refuses=("data", "database", "output", "conf", "with"),
    ),
)


def commands() -> dict[str, Command]:
    """Returns the commands by name, in the order of --help: the command's own, and those of the features among them."""
    of_features = (command for feature in features() for command in feature.commands)
    return {c.name: c for c in (*_FIRST, *of_features, *_LAST)}


def split(argv: Sequence[str], valued: frozenset[str]) -> tuple[list[str], str | None, list[str]]:
    """Returns the arguments before the command, its name (the first that is not an option; None: there is none), and those behind it.

    `valued`: the options that take the argument after them as their value. Subparsers of argparse do not fit: a `--conf` behind the command
    would replace those before it, and `streamql spark-sql -e …` would be an error.
    """
    i = 0
    while i < len(argv) and argv[i].startswith("-") and argv[i] != "--":
        i += 2 if argv[i] in valued else 1
    if i >= len(argv):
        return list(argv), None, []
    return list(argv[:i]), argv[i], list(argv[i + 1 :])


def table() -> str:
    """Returns the commands as lines for --help."""
    found = commands()
    width = max(map(len, found))
    return "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in found.values())


def parser(command: Command, options: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser of what stands behind a command's name. `options`: those that may stand there as well as before it."""
    made = Parser(
        prog=f"streamql {command.name}",
        usage=f"streamql [options] {command.name} [arguments of its own]" if command.takes_all else None,
        description=command.code.__doc__,
        parents=[options],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if not command.takes_all:
        command.code.arguments(made)
    return made
