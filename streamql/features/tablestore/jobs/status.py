"""The status table of exports: what was exported, and where the next export begins. Pure, over the table's rows.

Source of the rules: DataX, otsstreamreader. Its status table has the key (StreamId, StatusType, StatusValue) and serves many data tables. A
job whose start is the end of a finished job continues where that one ended. Otherwise it begins with the first record that is still there,
and skips older ones.

Here a job has one row. It holds the versions that the job exports, and it is written before the first record is read. A run that repeats
the job, after a crash or not, exports the same versions: the same records in the same order.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from streamql.errors import StreamqlError
from streamql.features.tablestore.jobs.shards import Followed, parse_tree
from streamql.features.tablestore.jobs.windows import History, Slice, Window, check_retained, trimmed
from streamql.times import DAY_MS, iso

COLUMNS = (
    ("StreamId", "string"),
    ("StatusType", "string"),
    ("StatusValue", "string"),
    ("Status", "string"),
    ("UpdatedMillis", "bigint"),
)
"""The columns of a status table: names, and types as SQL has them. The first three are the key."""

JOB_TYPE = "DataxJobDesc"
"""The StatusType of jobs. Its StatusValue is the end and the start of the window, 16 digits each, with a tab between them."""

TTL_MS = 30 * DAY_MS
"""How long after its last change a row is valid, in milliseconds. DataX makes its status table with the same time to live."""

TREE_TYPE = "ShardTree"
"""The StatusType of shard trees. A stream has one such row, whose StatusValue is empty. With it, an export need not follow the table's
metadata from the beginning."""

STATUS_TABLE = "tablestore.status_table."
"""The property of a data table that names the id of a status table, which exports of it use. The status table's name follows."""

FORMAT_VERSION = 1

FILES_MAX = 16
"""With more small files than this, a commit to the status table joins them."""

SMALL_FILE_ROWS = 1000
"""A file of the status table with up to so many rows is written anew if one of them is outdated. Of a larger one, half of them must be."""


@dataclass(frozen=True)
class StatusRow:
    """A row of the status table. `status` is JSON; `updated_ms` is in milliseconds since 1970."""

    stream_id: str
    status_type: str
    status_value: str
    status: str
    updated_ms: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Returns what a later row replaces this one by."""
        return (self.stream_id, self.status_type, self.status_value)


@dataclass(frozen=True)
class StatusFile:
    """A data file of the status table. `path`: as the table's log has it."""

    path: str
    rows: tuple[StatusRow, ...]


@dataclass(frozen=True)
class JobStatus:
    """A job: the export of a window of a stream.

    `versions`: the commits that it exports, in every run. `resumed`: it continues a finished job, so it skips no commit. `owner`: the
    process that runs it. None: no process does. `done_ms`: when a run finished first. None: no run has. `updated_ms`: the last heartbeat.
    `is_early`: it ran before the start of its window and found no commit. No job continues at its end, and its next run looks for commits
    again. `counts`: how many tuples of each opType the last finished run wrote.
    """

    stream_id: str
    window: Window
    versions: Slice
    resumed: bool
    owner: str | None
    done_ms: int | None
    updated_ms: int
    is_early: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)

    def finished(self, counts: Mapping[str, int], now_ms: int) -> JobStatus:
        """Returns the status after a run that wrote its output."""
        done_ms = now_ms if self.done_ms is None else self.done_ms
        return replace(self, owner=None, done_ms=done_ms, updated_ms=now_ms, counts=dict(counts))

    def alive(self, now_ms: int) -> JobStatus:
        """Returns the status with a new heartbeat of its owner."""
        return replace(self, updated_ms=now_ms)

    def to_row(self) -> StatusRow:
        """Returns the row of the job."""
        status = {
            "format": FORMAT_VERSION,
            "first": self.versions.first,
            "next": self.versions.next,
            "reached_end": self.versions.reached_end,
            "resumed": self.resumed,
            "owner": self.owner,
            "done_ms": self.done_ms,
            "early": self.is_early,
            "counts": dict(self.counts),
        }
        text = json.dumps(status, separators=(",", ":"), ensure_ascii=False)
        value = f"{self.window.end_ms:016d}\t{self.window.start_ms:016d}"
        return StatusRow(self.stream_id, JOB_TYPE, value, text, self.updated_ms)


@dataclass(frozen=True)
class Start:
    """Where a job begins. `after`: the version before the first one to read. `resumed`: the job skips no commit (`windows.select`).

    `versions`: what an earlier run of the job exports, so that this one exports the same. None: this is its first run.
    """

    after: int
    resumed: bool
    versions: Slice | None = None


def check_columns(found: Sequence[tuple[str, str]], table: str) -> None:
    """Checks the names and types of a status table's columns. Raises STATUS_TABLE_INVALID if it is some other table."""
    if [(name.lower(), data_type.lower()) for name, data_type in found] != [
        (name.lower(), data_type) for name, data_type in COLUMNS
    ]:
        columns = ", ".join(f"{name} {data_type.upper()}" for name, data_type in found)
        raise StreamqlError(
            "STATUS_TABLE_INVALID",
            f"{table} is not a status table: its columns are ({columns})",
            hint="name another table as statusTable; one that does not exist is made",
        )


def jobs_of(rows: Iterable[StatusRow], stream_id: str, now_ms: int, table: str) -> list[JobStatus]:
    """Returns the jobs of a stream whose rows have not expired. Of several rows with one key the newest counts.

    Raises STATUS_TABLE_INVALID if a row cannot be read.
    """
    newest: dict[tuple[str, str, str], StatusRow] = {}
    for row in rows:
        is_job = row.stream_id == stream_id and row.status_type == JOB_TYPE
        if is_job and not is_expired(row, now_ms) and row.updated_ms >= newest.get(row.key, row).updated_ms:
            newest[row.key] = row
    return [_from_row(row, table) for row in newest.values()]


def replaced(files: Sequence[StatusFile], added: Sequence[StatusRow], now_ms: int) -> tuple[list[str], list[StatusRow]]:
    """Returns the paths of the files that a commit of rows to the status table removes, and the rows of the file that it adds.

    Rows are outdated if they have expired, or if there is a newer one with their key. Outdated rows are left out of the file that is
    added; all others of the removed files are in it. `added`: the newest rows of their keys.
    """
    newest: dict[tuple[str, str, str], StatusRow] = {}
    for row in (*(row for file in files for row in file.rows), *added):
        if row.updated_ms >= newest.get(row.key, row).updated_ms:
            newest[row.key] = row
    kept = {id(row) for row in newest.values() if not is_expired(row, now_ms)}
    live = [[row for row in file.rows if id(row) in kept] for file in files]

    def is_worth_it(file: StatusFile, rows: list[StatusRow]) -> bool:
        outdated = len(file.rows) - len(rows)
        return outdated > 0 and (len(file.rows) <= SMALL_FILE_ROWS or outdated * 2 >= len(file.rows))

    chosen = {i for i, file in enumerate(files) if is_worth_it(file, live[i])}
    small = {i for i, file in enumerate(files) if len(file.rows) <= SMALL_FILE_ROWS}
    if len(small - chosen) > FILES_MAX:
        chosen |= small
    paths = [files[i].path for i in sorted(chosen)]
    return paths, [*(row for i in sorted(chosen) for row in live[i]), *added]


def tree_row(stream_id: str, followed: Followed, now_ms: int) -> StatusRow:
    """Returns the row that keeps a stream's shard tree."""
    return StatusRow(stream_id, TREE_TYPE, "", followed.tree.to_text(followed.version), now_ms)


def followed_trees(rows: Iterable[StatusRow], table: str) -> list[Followed]:
    """Returns the shard trees of all streams in the rows. A row that cannot be read is left out: it only spares work."""
    found = []
    for row in rows:
        if row.status_type == TREE_TYPE:
            with contextlib.suppress(StreamqlError):
                tree = parse_tree(row.status, table)
                if tree.written is not None:
                    found.append(Followed(tree.written, replace(tree, written=None)))
    return found


def check_recorded(configuration: Mapping[str, str], status_table: str, status_id: str | None, table: str) -> None:
    """Checks that the status table is the one that earlier exports of a table used. Raises STATUS_TABLE_INVALID.

    `configuration`: the properties of the data table. `status_id`: the id of the status table. None: there is no such table.
    """
    key = recorded_key(status_table)
    known = configuration.get(key)
    if known is None or known == status_id:
        return
    what = "was dropped" if status_id is None else "was dropped and made anew"
    raise StreamqlError(
        "STATUS_TABLE_INVALID",
        f"the status table {status_table} {what}: it knew where the exports of {table} ended, so a job might repeat or miss commits",
        hint=f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{key}') lets exports begin anew; or name another statusTable",
    )


def recorded_key(status_table: str) -> str:
    """Returns the property of a data table that holds the id of a status table."""
    return STATUS_TABLE + status_table.lower()


def is_expired(row: StatusRow, now_ms: int) -> bool:
    """Returns whether a row has expired: it is ignored, and may be deleted."""
    return row.updated_ms + TTL_MS <= now_ms


def _from_row(row: StatusRow, table: str) -> JobStatus:
    try:
        data = json.loads(row.status)
        if data["format"] != FORMAT_VERSION:
            raise ValueError(data["format"])
        end, start = row.status_value.split("\t")
        return JobStatus(
            row.stream_id,
            Window(int(start), int(end)),
            Slice(int(data["first"]), int(data["next"]), bool(data["reached_end"])),
            bool(data["resumed"]),
            data["owner"],
            None if data["done_ms"] is None else int(data["done_ms"]),
            row.updated_ms,
            bool(data["early"]),
            {str(op): int(count) for op, count in data["counts"].items()},
        )
    except (AttributeError, LookupError, TypeError, ValueError) as e:
        raise StreamqlError(
            "STATUS_TABLE_INVALID",
            f"the status table {table} has a row that this version of streamql did not write: {row.status_value!r}",
            hint=f"DELETE FROM {table} WHERE StreamId = '{row.stream_id}' AND StatusValue = '{row.status_value}'",
        ) from e


def find_job(jobs: Iterable[JobStatus], window: Window) -> JobStatus | None:
    """Returns the status of the job of a window. None: no run of it is known."""
    return next((job for job in jobs if job.window == window), None)


def find_start(jobs: Sequence[JobStatus], window: Window, history: History, table: str) -> Start:
    """Returns where the job of a window begins.

    A job that ran before begins where it began then. Otherwise it continues where a finished job ended whose window ends at the start of
    this one. If there are several, it takes the one that read least, so that no record is left out. Otherwise it begins with the first
    record that is there and skips older ones; it need not look at commits that finished jobs of earlier windows exported. Raises
    STREAM_STALE, which names the earliest time, if records of the window are gone.
    """
    earlier = find_job(jobs, window)
    if earlier is not None and not earlier.is_early:
        if not earlier.versions.is_empty:
            _check_version(earlier.versions.first, history, window, table)
        return Start(earlier.versions.first - 1, earlier.resumed, earlier.versions)
    done = [job for job in jobs if job.done_ms is not None and not job.is_early]
    ends = [job.versions.next for job in done if job.window.end_ms == window.start_ms]
    if ends:
        _check_version(min(ends), history, window, table)
        return Start(min(ends) - 1, resumed=True)
    check_retained(history, window, table)
    passed = (job.versions.next - 1 for job in done if job.window.end_ms < window.start_ms)
    return Start(max(history.beginning, *passed, -1), resumed=False)


def _check_version(first: int, history: History, window: Window, table: str) -> None:
    if first <= history.beginning:
        raise trimmed(history, f"the window {window}, which begins at version {first},", table)


def check_free(
    job: JobStatus | None, owner: str, is_dead: Callable[[str], bool | None], now_ms: int, lease_ms: int
) -> None:
    """Checks that no other process runs a job. Raises JOB_BUSY.

    `is_dead`: whether a process has ended. None: it is unknown, and the process counts as dead after `lease_ms` without a heartbeat. Times
    are in milliseconds.
    """
    if job is None or job.owner is None or job.owner == owner:
        return
    dead = is_dead(job.owner)
    if dead or (dead is None and job.updated_ms + lease_ms <= now_ms):
        return
    raise StreamqlError(
        "JOB_BUSY",
        f"another process runs the export of {job.window}: {job.owner}, last seen at {iso(job.updated_ms)}",
        hint="wait for it; if it has died, run the job again when its lease has expired",
        owner=job.owner,
    )


def begun(
    stream_id: str, window: Window, start: Start, versions: Slice, owner: str, now_ms: int, earlier: JobStatus | None
) -> JobStatus:
    """Returns the status to write before the first record is read. `earlier`: the job's status. None: it has none.

    `versions`: what `windows.select` chose. It is not used if `start` has versions.
    """
    if start.versions is not None and earlier is not None:
        return replace(earlier, owner=owner, updated_ms=now_ms)
    is_early = now_ms < window.start_ms and versions.is_empty and not versions.reached_end and not start.resumed
    return JobStatus(stream_id, window, versions, start.resumed, owner, None, now_ms, is_early)
