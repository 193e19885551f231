"""What the prompt says, and when Enter submits. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from streamql.cli.shell.commands import parse
from streamql.cli.shell.highlight import Piece
from streamql.dialect.text.splitting import split


@dataclass(frozen=True)
class State:
    """What the user should know before typing. `server`: the host of a remote session."""

    database: str = "default"
    is_starting: bool = False
    in_transaction: bool = False
    server: str = ""


def prompt(state: State) -> list[Piece]:
    """`streamql (default)> `; the database is left out for what is more urgent."""
    name = ("prompt", "streamql")
    if state.is_starting:
        return [name, ("starting", f" ({'connecting' if state.server else 'starting'})"), ("prompt", "> ")]
    where = f"{state.database} at {state.server}" if state.server else state.database
    pieces: list[Piece] = [name, ("", f" ({where}")]
    if state.in_transaction:
        pieces.append(("transaction", ", in transaction"))
    return [*pieces, ("", ")"), ("prompt", "> ")]


def continuation(width: int) -> str:
    """Returns what stands before the second line and those after it, as wide as the prompt."""
    return "> ".rjust(max(width, 2))


def submits(text: str) -> bool:
    """Returns whether Enter ends the input: behind a semicolon that ends a statement, on a command's line, on an empty one."""
    if not text.strip() or parse(text) is not None:
        return True
    fragments = split(text)
    return not fragments or fragments[-1].terminated
