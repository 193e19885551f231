"""What was typed, kept in a file of the person's own between sessions.

The format is prompt_toolkit's: `# time`, then each line after a `+`, then an empty line. Inputs that hold a secret, or begin with a space,
are not written.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from streamql.extension.host import cache_dir

ENTRIES_MAX = 5_000
ENTRY_LETTERS_MAX = 20_000
_SECRET = re.compile(
    r"passw|pwd|secret|token|credential|access[._-]?key|account[._-]?key|private[._-]?key|api[._-]?key|sasl|jaas"
    r"|aes_(?:en|de)crypt|://[^/\s:]+:[^/\s@]+@",
    re.IGNORECASE,
)


def history_file() -> Path:
    """Returns where it is: $STREAMQL_HISTORY, or `history` in the cache directory."""
    own = os.environ.get("STREAMQL_HISTORY")
    return Path(own).expanduser() if own else cache_dir() / "history"


def is_kept(text: str) -> bool:
    """Returns whether an input may be written to the file."""
    return bool(text.strip()) and text[0] != " " and len(text) <= ENTRY_LETTERS_MAX and not _SECRET.search(text)


def load(path: Path) -> list[str]:
    """Returns the inputs, the oldest first; none where the file cannot be read. A file that has grown too long is cut."""
    try:
        entries = list(_entries(path.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return []
    if len(entries) > 2 * ENTRIES_MAX:
        entries = entries[-ENTRIES_MAX:]
        with contextlib.suppress(OSError):
            scratch = path.with_suffix(f".{os.getpid()}")
            scratch.unlink(missing_ok=True)
            for entry in entries:
                append(scratch, entry)
            scratch.replace(path)
    return entries


def append(path: Path, text: str) -> None:
    """Adds an input, if it may be kept. A file that cannot be written is not an error: the shell continues without it."""
    if not is_kept(text):
        return
    lines = "".join(f"+{line}\n" for line in text.split("\n"))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            os.fchmod(file.fileno(), 0o600)  # also of a file that was there
            file.write(f"\n# {datetime.now().astimezone():%Y-%m-%d %H:%M:%S%z}\n{lines}")


def _entries(content: str) -> Iterator[str]:
    lines: list[str] = []
    for line in content.split("\n"):
        if line.startswith("+"):
            lines.append(line[1:])
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)
