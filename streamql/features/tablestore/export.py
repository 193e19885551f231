"""`streamql export`: runs a job. The status table is written before the first record is read, and after the output is there.

Each step can be repeated. A run that was killed leaves a status row and maybe hidden files; the next run exports the same commits.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from json import dumps, loads

from pyspark.sql import SparkSession

from streamql.catalog.states import Owner
from streamql.consume.claims.owner import is_dead, is_of_this_host, is_this_process, this_owner
from streamql.delta.jvm import activate
from streamql.errors import StreamqlError, counted
from streamql.features.tablestore.failures import is_transient, translated
from streamql.features.tablestore.formats.records import tuple_columns
from streamql.features.tablestore.jobs import retries
from streamql.features.tablestore.jobs.job import Job
from streamql.features.tablestore.jobs.outputs import check_target, digest, summary
from streamql.features.tablestore.jobs.shards import Followed
from streamql.features.tablestore.jobs.status import (
    JobStatus,
    Start,
    StatusRow,
    begun,
    check_free,
    check_recorded,
    find_job,
    find_start,
    followed_trees,
    jobs_of,
    recorded_key,
    tree_row,
)
from streamql.features.tablestore.jobs.windows import Slice, select
from streamql.features.tablestore.records.rows import Records, no_records, records_of_commits
from streamql.features.tablestore.records.streams import open_stream
from streamql.features.tablestore.records.tuples import TableStream, recorded_stream, slices
from streamql.features.tablestore.status_table import (
    StatusRows,
    StatusTable,
    create_status_table,
    find_status_table,
    status_table_name,
)
from streamql.features.tablestore.write import Counts, Output, write
from streamql.settings import LEASE, seconds
from streamql.times import now_ms

ATTEMPTS_MAX = 100
"""How often a row of the status table is written again after other processes wrote theirs."""

_VERSION = re.compile(r"^version (\d+) has ")
"""The version that violates the primary key, in the message of PRIMARY_KEY_VIOLATED."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Exported:
    """What an export did. `counts`: tuples by opType. `shards`: how many shards its commits have. `text`: all of it as a sentence."""

    job: JobStatus
    counts: Counts
    shards: int
    target: str
    text: str


def export(spark: SparkSession, job: Job, tell: Tell | None = None) -> Exported:
    """Runs a job: exports the commits of its window. Run again, it exports the same commits to the same output.

    `tell`: is called with a line of text at each step, and before a retry. None: no progress is reported.

    Raises INVALID_JOB, TABLE_NOT_FOUND, CHANGE_TRACKING_DISABLED, PRIMARY_KEY_NOT_DECLARED, PRIMARY_KEY_VIOLATED, STATUS_TABLE_INVALID,
    JOB_BUSY, STREAM_STALE, OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, and others. If it raises, the target is as it was before.
    """
    activate(spark)  # a thread that a user started has no session, without which Spark cannot plan CREATE TABLE AS
    say = tell or (lambda _: None)
    run = _Run(spark, job, say)
    _running.add(run.id)
    try:
        return _exported(run, job, say)
    finally:
        _running.discard(run.id)


def _exported(run: _Run, job: Job, say: Tell) -> Exported:
    started = run.begin()
    try:
        with run.heartbeat(started):
            counts = retries.call(
                lambda: run.write(started),
                job.reader.max_retries,
                is_transient,
                failed=lambda n, pause, e: say(_retry_text(n, job.reader.max_retries, pause, e)),
            )
    except BaseException as e:
        run.release(started)
        known = _known(e, str(run.stream.name))
        if known is None:
            raise
        raise run.with_hint(known) from (None if known is e else e)
    done = run.finish(started, counts)
    shards = run.shards_of(done)
    return Exported(done, counts, shards, job.writer.target, summary(done, counts, shards, job.writer))


def _known(error: BaseException, table: str) -> StreamqlError | None:
    """Returns the error as one of streamql. None: it is not one."""
    if isinstance(error, StreamqlError):
        return error
    return translated(error, table) if isinstance(error, Exception) else None


_running: set[str] = set()
"""The runs of this process."""


def _retry_text(number: int, total: int, pause_ms: int, error: Exception) -> str:
    return f"retry {number} of {total} in {pause_ms / 1000:.1f} s: {str(error).strip().splitlines()[0][:200]}"


class _Run:
    """One run of a job by this process."""

    def __init__(self, spark: SparkSession, job: Job, tell: Tell) -> None:
        self.spark, self.job, self.tell = spark, job, tell
        self.id = str(uuid.uuid4())
        self.owner = dumps({"run": self.id, **asdict(this_owner(spark))}, sort_keys=True)
        self.lease_ms = int(seconds(spark, LEASE) * 1000)
        self.window = job.reader.window(str(spark.conf.get("spark.sql.session.timeZone")))
        status, rows = self._open_status()
        self.stream: TableStream = open_stream(
            spark, job.reader.data_table, followed_trees(rows, job.reader.data_table), is_only_read=True
        )
        self._check(status, rows)
        self.status: StatusTable = status or create_status_table(spark, job.reader.status_table)
        self.stream = recorded_stream(self.stream, {recorded_key(str(self.status.name)): self.status.table_id})

    def _open_status(self) -> tuple[StatusTable | None, list[StatusRow]]:
        """Returns the status table and its rows. None: it does not exist yet."""
        status = find_status_table(self.spark, self.job.reader.status_table)
        return status, [] if status is None else status.read().rows

    def _check(self, status: StatusTable | None, rows: Sequence[StatusRow]) -> None:
        """Raises what is wrong with the job, before anything is written."""
        reader, table = self.job.reader, str(self.stream.name)
        tuple_columns(self.stream.tree.generations[-1].key, sequence_info=reader.sequence_info, table=table)
        name = str(status_table_name(self.spark, reader.status_table))
        check_recorded(self.stream.latest.configuration, name, None if status is None else status.table_id, table)
        jobs = jobs_of(rows, self.stream.stream_id, now_ms(), name)
        check_target(self.job.writer, ran_before=find_job(jobs, self.window) is not None)
        find_start(jobs, self.window, self.stream.history, table)

    def begin(self) -> JobStatus:
        """Claims the job: chooses its commits, or those that an earlier run chose. Raises JOB_BUSY."""
        for _ in range(ATTEMPTS_MAX):
            known = self.status.read()
            jobs = jobs_of(known.rows, self.stream.stream_id, now_ms(), str(self.status.name))
            earlier = find_job(jobs, self.window)
            check_free(earlier, self.owner, _is_dead, now_ms(), self.lease_ms)
            check_target(self.job.writer, ran_before=earlier is not None)
            start = find_start(jobs, self.window, self.stream.history, str(self.stream.name))
            versions = start.versions
            if versions is None:
                versions = self._select(start)
            row = begun(self.stream.stream_id, self.window, start, versions, self.owner, now_ms(), earlier)
            if self._write(known, row, begins=True):
                again = "again " if earlier is not None and earlier.done_ms is not None else ""
                self.tell(f"exporting {again}{_commits_text(row)} of {self.stream.name}, {self.window}")
                return row
        raise self._contended()

    def _select(self, start: Start) -> Slice:
        """Returns the commits of the window."""
        after = start.after
        if not start.resumed:
            after = self.stream.version_at(self.window.start_ms, after) - 1
        return select(self.stream.commits_after(after), self.window, after, resumed=start.resumed)

    def write(self, started: JobStatus) -> Counts:
        """Reads the records and writes the output."""
        versions = started.versions
        sequence_info = self.job.reader.sequence_info
        if versions.is_empty:
            records = _no_records(self.spark, self.stream)
        else:
            history = self.stream.section(versions.first, versions.next - 1)
            records = records_of_commits(
                self.spark, history, self.stream.tree, str(self.stream.name), slices(history.commits)
            )
        names = tuple_columns(records.key.names, sequence_info=sequence_info, table=str(self.stream.name))
        self.tell(f"writing {self.job.writer.target}")
        return write(records, Output(self.job.writer, digest(started, self.job.writer, names), sequence_info))

    def finish(self, started: JobStatus, counts: Counts) -> JobStatus:
        """Notes in the status table that the output is there."""
        return self._update(started, lambda known: known.finished(counts, now_ms()))

    def release(self, started: JobStatus) -> None:
        """Notes that no process runs the job, after a failure. If this fails too, the lease expires."""
        try:
            self._update(started, lambda known: replace(known, owner=None, updated_ms=now_ms()))
        except Exception:
            return

    def _update(self, started: JobStatus, change: Callable[[JobStatus], JobStatus]) -> JobStatus:
        """Changes the row of the job, which this process has claimed. Raises JOB_BUSY if another one has taken it over."""
        for _ in range(ATTEMPTS_MAX):
            known = self.status.read()
            found = find_job(jobs_of(known.rows, self.stream.stream_id, now_ms(), str(self.status.name)), self.window)
            check_free(found, self.owner, lambda _: False, now_ms(), self.lease_ms)
            made = change(found or started)
            if self._write(known, made):
                return made
        raise self._contended()

    def _write(self, known: StatusRows, job: JobStatus, *, begins: bool = False) -> bool:
        """Writes the row of the job, newer than the one before. `begins`: also the shards, from which later runs follow the table."""
        key, now = job.to_row().key, now_ms()
        newest = max((row.updated_ms for row in known.rows if row.key == key), default=-1)
        rows = [replace(job, updated_ms=max(job.updated_ms, newest + 1)).to_row()]
        if begins:
            followed = Followed(self.stream.latest.version, self.stream.tree)
            rows.append(tree_row(self.stream.stream_id, followed, now))
        return self.status.write(known, rows, now)

    def _contended(self) -> StreamqlError:
        return StreamqlError(
            "JOB_BUSY",
            f"the status table {self.status.name} was changed by other processes {counted(ATTEMPTS_MAX, 'time')} in a row",
            hint="run the job again",
        )

    @contextmanager
    def heartbeat(self, started: JobStatus) -> Iterator[None]:
        """Writes a heartbeat to the status table four times a lease, until the block ends."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(max(0.2, self.lease_ms / 4000)):
                try:
                    self._update(started, lambda known: known.alive(now_ms()))
                except Exception:  # the lease lasts for four beats
                    continue

        thread = threading.Thread(target=beat, name="streamql-export", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def with_hint(self, error: StreamqlError) -> StreamqlError:
        """Returns the error. If a commit violates the primary key or the key changes, the hint has the times of two jobs that can be run: a
        job that is run again exports the same commits, so it would fail again."""
        found = _VERSION.search(error.message) if error.code == "PRIMARY_KEY_VIOLATED" else None
        version = int(found.group(1)) if found is not None else error.facts.get("version")
        if error.code not in ("PRIMARY_KEY_VIOLATED", "INVALID_PROPERTY") or not isinstance(version, int):
            return error
        time_ms = self.stream.commits(version - 1, version)[0].time_ms
        first = f'write two jobs: one with "endTimestampMillis": {time_ms}, and one with '
        hint = (
            f'{first}"startTimestampMillis": {time_ms}'
            if found is None
            else f"correct the table, and {first}a startTimestampMillis after the correction; they leave version {version} out"
        )
        return StreamqlError(error.code, error.message, hint=hint, version=version)

    def shards_of(self, done: JobStatus) -> int:
        """Returns how many shards the commits of a job have."""
        versions = done.versions
        if versions.is_empty:
            return 0
        return sum(g.count for g, _, _ in self.stream.tree.ranges(versions.first, versions.next - 1))


def _commits_text(job: JobStatus) -> str:
    versions = job.versions
    if versions.is_empty:
        return "no commits"
    count = counted(versions.next - versions.first, "commit")
    return f"{count} (versions {versions.first} to {versions.next - 1})"


def _no_records(spark: SparkSession, stream: TableStream) -> Records:
    return no_records(spark, stream.tree.generations[-1], stream.latest.metadata, str(stream.name))


def _is_dead(owner: str) -> bool | None:
    """Returns whether the run of an owner has ended. None: its process is on another host."""
    try:
        fields = loads(owner)
        run, found = fields.pop("run"), Owner(**fields)
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    if not is_of_this_host(found):
        return None
    return is_dead(found) or (is_this_process(found) and run not in _running)
