"""The job file of an export, as typed data. Source of the format: DataX, otsstreamreader.

The file holds `{"reader": …, "writer": …}`, or DataX's envelope around it: `{"job": {"content": [{"reader": …, "writer": …}]}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.jsonc import error, parse
from streamql.features.tablestore.jobs.parameters import Entries, is_set
from streamql.features.tablestore.jobs.retries import RETRIES, RETRIES_MAX
from streamql.features.tablestore.jobs.windows import TIME_MAX_MS, Window, of_day, parse_date
from streamql.features.tablestore.jobs.writers import WRITER_HINT, Writer, parse_writer
from streamql.misspelt import suggestion

JOB_BYTES_MAX = 1 << 18

READER = "otsstreamreader"
READER_HINT = (
    '"reader": {"name": "otsstreamreader", "parameter": {"dataTable": "…", "statusTable": "…", "date": "20151111"}}'
)

UNUSED = ("endpoint", "accessId", "accessKey", "instanceName", "threadNum")
"""Parameters that DataX needs and that mean nothing here. Their values are in no message."""

USED = (
    "dataTable",
    "statusTable",
    "startTimestampMillis",
    "endTimestampMillis",
    "date",
    "isExportSequenceInfo",
    "maxRetries",
)
"""Parameters that a job sets."""

REFUSED = {
    "column": "an export holds all columns",
    "mode": "an export has one mode, in which each change of a column is a row",
    "startTimeString": "startTimestampMillis sets the start",
    "endTimeString": "endTimestampMillis sets the end",
}
"""Parameters of later versions of DataX, each with the reason why it cannot be set."""


@dataclass(frozen=True)
class Reader:
    """What a job exports. Either `range` or `day` is set; the other is None.

    `data_table`, `status_table`: names as SQL has them. `day`: a day in the time zone of the session. `max_retries`: how often a read that
    failed is repeated.
    """

    data_table: str
    status_table: str
    range: Window | None
    day: date | None
    sequence_info: bool = False
    max_retries: int = RETRIES

    def window(self, zone: str) -> Window:
        """Returns the window that is exported. `zone`: the session's time zone. Raises INVALID_JOB if the day does not exist in it."""
        if self.range is not None:
            return self.range
        assert self.day is not None
        return of_day(self.day, zone)


@dataclass(frozen=True)
class Job:
    """A job file. `unused`: entries that are set and that mean nothing here."""

    reader: Reader
    writer: Writer
    unused: tuple[str, ...] = ()

    @property
    def note(self) -> str | None:
        """Returns a sentence for the user about unused entries. None: there are none."""
        if not self.unused:
            return None
        return f"not used: {', '.join(self.unused)}. The session finds the tables, and Spark divides the work"


def load_job(path: Path) -> Job:
    """Reads a job file, in UTF-8. Raises INVALID_JOB, with line and column if the text is at fault."""
    try:
        content = path.read_bytes()
    except OSError as e:
        raise StreamqlError("INVALID_JOB", f"the job file {path} cannot be read: {e.strerror}") from e
    if len(content) > JOB_BYTES_MAX:
        raise StreamqlError("INVALID_JOB", f"the job file {path} is larger than {JOB_BYTES_MAX} bytes")
    try:
        return parse_job(content.decode("utf-8"))
    except UnicodeDecodeError as e:
        line = content[: e.start].count(b"\n") + 1
        raise StreamqlError(
            "INVALID_JOB", f"the job file {path} is not UTF-8, at line {line}", hint="save it as UTF-8"
        ) from e


def parse_job(text: str) -> Job:
    """Returns the job of a text. Raises INVALID_JOB with line and column."""
    root, unused = _content(Entries.of(parse(text), "the job"))
    root.check_keys(("reader", "writer"))
    reader = root.child("reader", "the reader", f"write {READER_HINT}")
    reader.check_keys(("name", "parameter"))
    name = reader.required_text("name", f'write "name": "{READER}"')
    if name != READER:
        hint = suggestion(name, [READER]) or f'write "name": "{READER}"'
        raise error(reader.members["name"], f"there is no reader {name}", hint)
    parameter = reader.child("parameter", "the parameter of the reader", f"write {READER_HINT}")
    read = _reader(parameter)
    unused += [key for key in UNUSED if parameter.find(key) is not None]
    return Job(read, parse_writer(root.child("writer", "the writer", f"write {WRITER_HINT}")), tuple(unused))


def _content(root: Entries) -> tuple[Entries, list[str]]:
    """Returns the object that has reader and writer, and the entries of DataX's envelope that mean nothing here."""
    if "job" not in root.members:
        return root, []
    root.check_keys(("job", "core", "common"))
    job = root.child("job", "the job", 'write "job": {"content": [{"reader": …, "writer": …}]}')
    job.check_keys(("content", "setting"))
    unused = [key for entries in (job, root) for key in ("setting", "core", "common") if entries.find(key) is not None]
    content = job.members.get("content")
    if content is None or not is_set(content):
        raise job.missing("content", 'write "content": [{"reader": …, "writer": …}]')
    if isinstance(content.value, Mapping):
        return Entries.of(content, "the job"), unused
    if not isinstance(content.value, tuple) or len(content.value) != 1:
        raise error(content, '"content" holds one reader with its writer', "write a job file for each")
    return Entries.of(content.value[0], "the job"), unused


def _reader(parameter: Entries) -> Reader:
    parameter.check_keys((*USED, *UNUSED), REFUSED)
    data_table = parameter.required_text("dataTable", 'write "dataTable": "schema.table", the table to export')
    status_hint = 'write "statusTable": "TableStoreStreamReaderStatusTable"; the table is made if it does not exist'
    status_table = parameter.required_text("statusTable", status_hint)
    if data_table.lower() == status_table.lower():
        raise error(parameter.members["statusTable"], "the status table is the table to export", status_hint)
    window, day = _times(parameter)
    retries = parameter.integer("maxRetries", 0, RETRIES_MAX)
    return Reader(
        data_table,
        status_table,
        window,
        day,
        parameter.boolean("isExportSequenceInfo", False),
        RETRIES if retries is None else retries,
    )


def _times(parameter: Entries) -> tuple[Window | None, date | None]:
    """Returns the range or the day. Raises INVALID_JOB if both, none, or half of a range is set."""
    start, end = (parameter.integer(key, 0, TIME_MAX_MS) for key in ("startTimestampMillis", "endTimestampMillis"))
    node = parameter.find("date")
    either = "set date, or startTimestampMillis and endTimestampMillis"
    if node is None and start is None and end is None:
        raise error(parameter.node, "the job has no window: neither date, nor a start and an end", either)
    if node is not None and (start is not None or end is not None):
        raise error(node, "date and a timestamp are both set", f"{either}; not both", at_key=True)
    if node is not None:
        text = str(node.value).strip() if isinstance(node.value, int) else parameter.text("date")
        try:
            return None, parse_date(text or "")
        except ValueError as e:
            raise error(node, f'"date" is a day as yyyyMMdd, found {text}', 'write "date": "20151111"') from e
    if start is None or end is None:
        key = "startTimestampMillis" if start is None else "endTimestampMillis"
        raise parameter.missing(key, either)
    if end <= start:
        message = f"the end {end} is not after the start {start}"
        raise error(parameter.members["endTimestampMillis"], message, "the range is [start, end), in milliseconds")
    return Window(start, end), None
