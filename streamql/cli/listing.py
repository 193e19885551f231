"""Rows that a command has found itself, in the format that was asked for; and what else the commands that look have in common."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.cli import grid
from streamql.cli.formats import WRITERS, Row
from streamql.cli.output import terminal_width

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.catalog.states import StreamState


def is_new(directory: Path) -> bool:
    """Whether a session over the directory makes a lakehouse there. Nothing is made here."""
    from streamql.extension.metastore import file_of

    try:
        return not file_of(directory.expanduser()).is_file()
    except OSError:  # it cannot be read: the session's start says why
        return False


def made(directory: Path) -> str:
    """What to say after that."""
    return f"made a new lakehouse in {directory.expanduser().absolute()}"


def no_data(directory: Path) -> str | None:
    """What to say if there is no data directory to look at; None if there is one. Nothing is made."""
    if not is_new(directory):
        return None
    what = "is no data directory" if directory.expanduser().exists() else "does not exist"
    return (
        f"error: [INVALID_ARGUMENT] there is nothing to look at: {directory} {what}\n"
        "hint: --data DIR names the directory in which tables and streams live; "
        f"streamql --data {directory} -e '…' makes it"
    )


def write(output: str, names: Sequence[str], numeric: Sequence[bool], rows: Sequence[Row], skip: int = 0) -> None:
    """Rows to stdout, in one of options.FORMATS. `skip`: how many lines of its header were written before, and are left out."""
    writer = WRITERS.get(output)
    if writer is not None:
        text = io.StringIO()
        writer(text, names, numeric, rows)
        sys.stdout.write(text.getvalue().split("\n", skip)[-1])
    else:
        say(line.rstrip() for line in grid.render(names, numeric, rows, terminal_width()))
    sys.stdout.flush()


def say(lines: Iterable[str]) -> None:
    """Lines to stdout."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def use(spark: SparkSession, database: str | None) -> None:
    """Makes a database the current one, where one was named. Raises what Spark raises."""
    from streamql.cli.session import use_statement
    from streamql.sessions import run_sql

    if database is not None:
        run_sql(use_statement(database), spark)


def streams_named(spark: SparkSession, names: Sequence[str]) -> list[StreamState]:
    """The streams of these names, as SQL writes them. Raises STREAM_NOT_FOUND, SYNTAX_ERROR."""
    from streamql.dialect import parse_name
    from streamql.engine.reads import need_stream

    return [need_stream(spark, parse_name(name)) for name in names]
