"""The commands beside SQL: `streamql NAME`. Each is a module of `streamql.cli.commands` with `arguments(parser)` and `run(…)`,
imported only when it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from streamql.cli.usage import Parser


@dataclass(frozen=True)
class Command:
    """A command. `in_session`: its `run` takes (spark, options), else (options); both give the exit code.

    `reads_only`: the command needs what is there: if there is no data directory, it makes none and says so. `failed`: its exit code if
    it fails.
    `takes_all`: what stands behind its name is another program's, and is left in `options.arguments.rest` as it is; `arguments` is not
    called. A module may have `check(options)`, which says what is wrong before Spark starts. `refuses`: those of the options of all
    commands that would do nothing here.
    """

    name: str
    summary: str
    in_session: bool
    reads_only: bool = False
    failed: int = 1
    takes_all: bool = False
    refuses: tuple[str, ...] = ()

    @property
    def module(self) -> ModuleType:
        """Returns where it is done: streamql.cli.commands.NAME."""
        return import_module(f"streamql.cli.commands.{self.name.replace('-', '_')}")


COMMANDS = {
    c.name: c
    for c in (
        Command(
            "conf",
            "print the settings that give any Spark the extension, for its spark-defaults.conf",
            False,
            refuses=("data", "database", "output", "conf"),
        ),
        Command(
            "prepare",
            "fetch and build now what starts need: for images, and for quicker starts",
            False,
            refuses=("data", "database", "output"),
        ),
        Command(
            "doctor",
            "check every stream and claim, and say what is wrong and what to do",
            True,
            True,
            refuses=("database",),
        ),
        Command("streams", "every stream: lag, backlog, staleness, last consumption, last error", True, True),
        Command("has-data", "whether a stream has data, as an exit code: 0 yes, 1 no, 2 error", True, True, failed=2),
        Command("watch", "the same as streams, live", True, True),
        Command("report", "a page of HTML on lag, consumption, lineage and staleness", True, True),
        Command(
            "refresh", "refresh dynamic tables: all, some, or those that are due; --loop is a scheduler", True, True
        ),
        Command("run", "run a script once, or every so often, or when a stream has data", True),
        Command(
            "translate",
            "print a script of Snowflake, Databend or ClickZetta as Spark SQL with streamql's statements",
            False,
            failed=2,
            refuses=("data", "database", "output", "conf", "with"),
        ),
        Command(
            "export", "export every change of a table as 6-tuples: job files of DataX's otsstreamreader", True, True
        ),
        Command(
            "spark-sql",
            "Spark's own bin/spark-sql over the data directory; takes all of its arguments",
            False,
            takes_all=True,
            refuses=("output",),
        ),
        Command(
            "server",
            "Spark's Thrift server (beeline, JDBC, PyHive), and Spark Connect with --connect",
            False,
            refuses=("database", "output"),
        ),
        Command(
            "completion",
            "print a script that completes this command in bash or zsh",
            False,
            refuses=("data", "database", "output", "conf", "with"),
        ),
    )
}


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
    width = max(map(len, COMMANDS))
    return "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS.values())


def parser(command: Command, options: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser of what stands behind a command's name. `options`: those that may stand there as well as before it."""
    made = Parser(
        prog=f"streamql {command.name}",
        usage=f"streamql [options] {command.name} [arguments of its own]" if command.takes_all else None,
        description=command.module.__doc__,
        parents=[options],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if not command.takes_all:
        command.module.arguments(made)
    return made
