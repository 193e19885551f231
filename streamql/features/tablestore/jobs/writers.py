"""The writers of an export, as a job file names them: jsonl, csv, parquet and delta."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from streamql.features.tablestore.formats.jsonc import error
from streamql.features.tablestore.jobs.parameters import Entries
from streamql.misspelt import suggestion

WRITER_HINT = '"writer": {"name": "jsonl", "parameter": {"path": "records.jsonl"}}'


class Format(Enum):
    """How an export is written."""

    JSONL = "jsonl"  # one file, an object a line
    CSV = "csv"  # one file, RFC 4180
    PARQUET = "parquet"  # a directory of files
    DELTA = "delta"  # rows appended to a Delta table


@dataclass(frozen=True)
class Writer:
    """The output of a job. `path`: a file, a directory or the path of a Delta table. None: `table` names a Delta table.

    `header` and `delimiter` are those of csv; other formats do not use them.
    """

    format: Format
    path: str | None
    table: str | None = None
    header: bool = True
    delimiter: str = ","

    @property
    def target(self) -> str:
        """Returns the path or the table, for messages and for the digest of an output."""
        return self.path if self.path is not None else f"table {self.table}"


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def local_path(text: str) -> Path | None:
    """Returns the path in the file system that a path or a `file:` URI names. None: it is the URI of another storage."""
    found = _SCHEME.match(text)
    if found is None:
        return Path(text)
    if found.group(1).lower() != "file":
        return None
    return Path(unquote(urlsplit(text).path))


_KEYS = {
    Format.JSONL: ("path",),
    Format.CSV: ("path", "header", "fieldDelimiter"),
    Format.PARQUET: ("path",),
    Format.DELTA: ("path", "table"),
}


def parse_writer(writer: Entries) -> Writer:
    """Returns the writer of a job. Raises INVALID_JOB."""
    writer.check_keys(("name", "parameter"))
    name = writer.required_text("name", f"write {WRITER_HINT}")
    names = [f.value for f in Format]
    if name not in names:
        hint = suggestion(name, names) or f"writers are {', '.join(names)}"
        raise error(writer.members["name"], f"there is no writer {name}", hint)
    chosen = Format(name)
    parameter = writer.child("parameter", f"the parameter of the writer {name}", f"write {WRITER_HINT}")
    parameter.check_keys(_KEYS[chosen])
    path, table = parameter.text("path"), parameter.text("table") if chosen is Format.DELTA else None
    if path is None and table is None:
        raise parameter.missing("path", 'write "path": "…", where the output goes')
    if path is not None and table is not None:
        raise error(parameter.members["table"], '"path" and "table" are both set', "set one of the two")
    if path is not None and chosen in (Format.JSONL, Format.CSV) and local_path(path) is None:
        hint = "name a local file, or use the writer parquet or delta"
        raise error(parameter.members["path"], f"the writer {name} writes local files, found {path}", hint)
    return Writer(chosen, path, table, parameter.boolean("header", True), _delimiter(parameter))


def _delimiter(parameter: Entries) -> str:
    node = parameter.members.get("fieldDelimiter")  # a blank or a tab is a value
    value = "," if node is None or node.value in ("", None) else node.value
    if isinstance(value, str) and len(value) == 1 and value not in '"\r\n':
        return value
    assert node is not None
    raise error(node, '"fieldDelimiter" is one character other than a quote or a line break')
