"""Whether there is a lakehouse in the data directory, and what a command says about that."""

from __future__ import annotations

from pathlib import Path


def is_new(directory: Path) -> bool:
    """Returns whether a session over the directory makes a lakehouse there. Nothing is made here."""
    from streamql.extension.metastore import file_of

    try:
        return not file_of(directory.expanduser()).is_file()
    except OSError:  # it cannot be read: the session's start says why
        return False


def made(directory: Path) -> str:
    """Returns what to say after that."""
    return f"made a new lakehouse in {directory.expanduser().absolute()}"


def no_data(directory: Path) -> str | None:
    """Returns what to say if there is no data directory to read; None if there is one. Nothing is made."""
    if not is_new(directory):
        return None
    what = "is not a data directory" if directory.expanduser().exists() else "does not exist"
    return (
        f"error: [INVALID_ARGUMENT] there is no data directory: {directory} {what}\n"
        "hint: --data DIR names the directory in which tables and streams live; "
        f"streamql --data {directory} -e '…' makes it"
    )
