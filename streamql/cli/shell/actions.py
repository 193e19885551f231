"""What the shell's commands do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from streamql.cli.shell import topics
from streamql.cli.shell.commands import Call, CommandError, find
from streamql.cli.shell.snapshot import Snapshot
from streamql.cli.shell.terminal import echo
from streamql.console.options import FORMATS
from streamql.console.render.output import Display
from streamql.dialect.text.tokens import TokenType, name_part, quote_string, tokenize
from streamql.errors import counted
from streamql.names import quote

WATCH_SECONDS_DEFAULT = 2.0
WATCH_SECONDS_MIN = 0.1
WATCH_SECONDS_MAX = 86_400


class Shell(Protocol):
    """What commands may ask of the shell."""

    display: Display
    pages: bool
    """Whether long results go to a pager."""

    def run_text(self, text: str) -> bool:
        """Runs statements; whether all succeeded. Raises KeyboardInterrupt after Ctrl-C."""

    def run_file(self, path: Path) -> bool:
        """Runs a file of statements. Raises CommandError where it cannot be read."""

    def say(self, text: str, end: str = "\n") -> None:
        """Shows a line or more on stdout."""

    def known(self, database: str | None = None) -> Snapshot:
        """Returns the catalog, with the names in the database (None: the current one) looked up now."""

    def last_statements(self) -> str:
        """Returns the last input that was SQL; empty: there was none."""

    def pause(self, seconds: float) -> None:
        """Waits. Raises KeyboardInterrupt after Ctrl-C."""

    def leave(self) -> None:
        """Ends the shell after this command."""


def help_(shell: Shell, argument: str) -> None:
    """\\help."""
    shell.say(topics.find(argument) if argument else topics.overview())


def describe(shell: Shell, argument: str) -> None:
    """\\d: a stream is described as one."""
    if not argument:
        known = shell.known()
        relations = sorted(known.relations.get(known.database.lower(), ()), key=lambda r: (r.type, r.name.lower()))
        if not relations:
            shell.say(f"there are no tables, views or streams in {known.database}")
            return
        width = max(len(r.name) for r in relations)
        for r in relations:
            shell.say(f"  {r.name:<{width}}  {'temporary ' if r.is_temporary else ''}{r.type}")
        return
    parts = _name(argument)
    relation = shell.known(parts[-2] if len(parts) > 1 else None).find(parts)
    relation_type = "table" if relation is None else relation.type
    name = ".".join(map(quote, parts))
    if relation_type == "external table":
        shell.run_text(f"DESCRIBE EXTERNAL TABLE {name}")
    elif relation_type in ("dynamic table", "materialized view"):
        if shell.run_text(f"DESCRIBE {relation_type.upper()} {name}"):
            shell.run_text(f"DESCRIBE TABLE {name}")
    elif relation_type != "stream":
        shell.run_text(f"DESCRIBE TABLE {name}")
    elif shell.run_text(f"DESCRIBE STREAM {name}"):
        shell.run_text(f"DESCRIBE QUERY SELECT * FROM {name}")


def streams(shell: Shell, argument: str) -> None:
    """\\streams."""
    shell.run_text(f"SHOW STREAMS LIKE {quote_string(argument.strip(chr(39)))}" if argument else "SHOW STREAMS")


def databases(shell: Shell, argument: str) -> None:
    """\\l."""
    _nothing("\\l", argument)
    shell.run_text("SHOW DATABASES")


def output(shell: Shell, argument: str) -> None:
    """\\o."""
    wanted = argument.lower()
    if wanted and wanted not in FORMATS:
        raise CommandError(f"there is no format {argument}", f"the formats are {', '.join(FORMATS)}")
    if wanted:
        shell.display = replace(shell.display, output=wanted)
    shell.say(f"rows are shown as {shell.display.output}")


def rows(shell: Shell, argument: str) -> None:
    """\\rows."""
    if argument and not (argument.isascii() and argument.isdigit()):
        raise CommandError(f"{argument} is not a number of rows", "\\rows 0 shows all")
    if argument:
        shell.display = replace(shell.display, max_rows=int(argument))
    limit = shell.display.max_rows
    shell.say(f"a table shows {counted(limit, 'row')} at most" if limit else "a table shows all rows")


def timing(shell: Shell, argument: str) -> None:
    """\\timing."""
    shell.display = replace(shell.display, timing=_switched("\\timing", argument, shell.display.timing))
    shell.say(f"timing is {'on' if shell.display.timing else 'off'}")


def pager(shell: Shell, argument: str) -> None:
    """\\pager."""
    shell.pages = _switched("\\pager", argument, shell.pages)
    shell.say(f"the pager is {'on' if shell.pages else 'off'}")


def watch(shell: Shell, argument: str) -> None:
    """\\watch: ends with Ctrl-C, or when the statement fails."""
    try:
        seconds = float(argument) if argument else WATCH_SECONDS_DEFAULT
    except ValueError:
        raise CommandError(f"{argument} is not a number of seconds", "\\watch 5") from None
    if not WATCH_SECONDS_MIN <= seconds <= WATCH_SECONDS_MAX:
        raise CommandError(f"{argument} s is not a valid pause", f"{WATCH_SECONDS_MIN} s to {WATCH_SECONDS_MAX} s")
    text = shell.last_statements()
    if not text:
        raise CommandError("no statement has run yet that could be watched", "run one, then \\watch 5")
    pages, shell.pages = shell.pages, False
    try:
        while True:
            shell.say(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}, every {seconds:g} s until Ctrl-C")
            if not shell.run_text(text):
                return
            shell.pause(seconds)
    finally:
        shell.pages = pages


def include(shell: Shell, argument: str) -> None:
    """\\i."""
    if not argument:
        raise CommandError("a file is missing", "\\i script.sql")
    try:
        path = Path(_unquoted(argument)).expanduser()
    except RuntimeError as e:  # ~name of an unknown user
        raise CommandError(str(e)) from None
    shell.run_file(path)


def system(shell: Shell, argument: str) -> None:
    """!command: in the user's own shell, with the terminal; prints its exit code if it is not 0."""
    if not argument:
        raise CommandError("a command is missing", "!ls")
    with echo(True):
        code = subprocess.run(argument, shell=True, check=False).returncode
    if code:
        shell.say(f"exit code {code}" if code > 0 else f"ended by signal {-code}")


def clear(shell: Shell, argument: str) -> None:
    """\\clear: what has scrolled by goes, too."""
    _nothing("\\clear", argument)
    shell.say("\x1b[H\x1b[2J\x1b[3J", end="")


def leave(shell: Shell, argument: str) -> None:
    """\\q."""
    _nothing("\\q", argument)
    shell.leave()


def _nothing(name: str, argument: str) -> None:
    if argument:
        raise CommandError(f"{name} takes no argument")


def _switched(name: str, argument: str, now: bool) -> bool:
    """Returns what on, off, or nothing (the other one) makes of a switch."""
    wanted = {"": not now, "on": True, "off": False}.get(argument.lower())
    if wanted is None:
        raise CommandError(f"{argument} is neither on nor off", f"{name} on")
    return wanted


def _name(argument: str) -> Sequence[str]:
    """Returns the parts of a name. Raises CommandError."""
    tokens = [token for token in tokenize(argument) if token.type is not TokenType.END]
    parts = [name_part(token) for token in tokens[::2]]
    dots = all(token.key == "." for token in tokens[1::2]) and len(tokens) % 2 == 1
    found = [part for part in parts if part is not None]
    if not dots or len(found) != len(parts):
        raise CommandError(f"{argument} is not a name", "\\d name, or \\d database.name; odd names in backquotes")
    return found


def _unquoted(argument: str) -> str:
    quoted = len(argument) > 1 and argument[0] == argument[-1] and argument[0] in "'\""
    return argument[1:-1] if quoted else argument


ACTIONS: Mapping[str, Callable[[Shell, str], None]] = {
    "\\help": help_,
    "\\d": describe,
    "\\streams": streams,
    "\\l": databases,
    "\\o": output,
    "\\rows": rows,
    "\\timing": timing,
    "\\pager": pager,
    "\\watch": watch,
    "\\i": include,
    "!": system,
    "\\clear": clear,
    "\\q": leave,
}
"""What each command of `COMMANDS` does, by its first name."""


def run(shell: Shell, call: Call) -> None:
    """Do what the command says. Raises CommandError, KeyboardInterrupt after Ctrl-C."""
    ACTIONS[find(call).names[0]](shell, call.argument)
