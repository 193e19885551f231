"""The output of an export: files that appear whole or not at all, and what recognizes an output that is there already. Pure Python.

A file is written beside its place and then put there in one step, which fails if a file is there already. A run that was killed in between
leaves a hidden file; the next run of the job writes it anew. A run that was killed after the last step left the whole output: the next run
writes the same bytes, sees that they are there, and has nothing to do.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from streamql.errors import StreamqlError, counted
from streamql.features.tablestore.formats.records import OpType, TupleValue
from streamql.features.tablestore.formats.values import text_of
from streamql.features.tablestore.jobs.status import JobStatus
from streamql.features.tablestore.jobs.writers import Format, Writer, local_path
from streamql.times import iso

MARKER = "_streamql_export.json"
"""A file in the directory of a parquet output that names its digest. Spark ignores files whose names begin with _."""

TXN_VERSION = 1
"""The version of the transaction that appends an export to a Delta table. Its application id is `app_id`."""

COPY_BYTES = 1 << 20
"""How much of a part is copied at once."""


def digest(job: JobStatus, writer: Writer, columns: Sequence[str]) -> str:
    """Returns the digest of the output of a job: 32 hexadecimal digits, the same in each run of the job.

    `columns`: those of the tuples. The digest changes with the stream, the versions, the columns, the target and its format.
    """
    versions = (job.versions.first, job.versions.next)
    parts = [
        job.stream_id,
        versions,
        list(columns),
        writer.format.value,
        writer.target,
        writer.header,
        writer.delimiter,
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16, person=b"tablestoreexport").hexdigest()


def app_id(output_digest: str) -> str:
    """Returns the id under which a Delta table remembers an export. If its transaction has TXN_VERSION, the rows are there."""
    return f"streamql:export:{output_digest}"


def marker_text(output_digest: str, counts: Mapping[str, int]) -> str:
    """Returns the content of MARKER, which is written last, before the directory is renamed to its place."""
    return json.dumps({"digest": output_digest, "tuples": dict(sorted(counts.items()))}) + "\n"


def marked_digest(text: str) -> str | None:
    """Returns the digest that a marker names. None: the text is not a marker."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        found = json.loads(text)["digest"]
        return found if isinstance(found, str) else None
    return None


def parts_path(target: Path, output_digest: str) -> Path:
    """Returns the hidden directory beside the target in which the tasks of a run write their parts of a file."""
    return target.with_name(f".{target.name}.{output_digest}.parts")


def staged_path(target: Path, output_digest: str) -> Path:
    """Returns the hidden file or directory beside the target that a run writes first."""
    return target.with_name(f".{target.name}.{output_digest}.part")


def check_target(writer: Writer, *, ran_before: bool) -> None:
    """Checks, before anything is read, that a local file or directory can appear at the writer's path. It does not check Delta tables and
    paths of other storage.

    `ran_before`: the job has a status, so a file at the path may be its output; the writer compares them later. Raises
    OUTPUT_NOT_WRITABLE and OUTPUT_EXISTS.
    """
    target = None if writer.path is None else local_path(writer.path)
    if target is None or writer.format is Format.DELTA:
        return
    parent = target.parent
    if not parent.is_dir():
        raise _not_writable(target, f"there is no directory {parent}", "make the directory, or name another path")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise _not_writable(target, f"the directory {parent} cannot be written", "name a path that can be written")
    is_file = writer.format in (Format.JSONL, Format.CSV)
    if is_file and target.is_dir():
        raise _not_writable(target, "it is a directory", "name a file")
    if target.exists() and not ran_before:
        raise exists(str(target))


def exists(target: str) -> StreamqlError:
    """Returns the error for a target that holds something else than the output of the job."""
    return StreamqlError(
        "OUTPUT_EXISTS",
        f"{target} exists, and is not the output of this job",
        hint="name another path, or move it away",
        path=target,
    )


def _not_writable(target: Path, why: str, hint: str) -> StreamqlError:
    return StreamqlError("OUTPUT_NOT_WRITABLE", f"{target} cannot be written: {why}", hint=hint, path=str(target))


def join_files(parts: Iterable[Path], columns: Sequence[str], writer: Writer, output_digest: str) -> None:
    """Joins files of jsonl or csv lines into one at the writer's path, which appears as a whole. CSV begins with the names of its columns,
    if the writer asks for that.

    `parts`: in their order; they are left as they are. Raises OUTPUT_NOT_WRITABLE, OUTPUT_EXISTS, and what `parts` raises; the path is
    then as it was. Raises ValueError if the writer's path is not local.
    """
    target = None if writer.path is None else local_path(writer.path)
    if target is None:
        raise ValueError(f"not a local file: {writer.target}")
    staged = staged_path(target, output_digest)
    try:
        with _reporting(target), staged.open("wb") as file:
            if writer.format is Format.CSV and writer.header:
                file.write(csv_line(columns, writer.delimiter).encode())
            for part in _guarded(parts):
                with part.open("rb") as lines:
                    shutil.copyfileobj(lines, file, COPY_BYTES)
            file.flush()
            os.fsync(file.fileno())
        with _reporting(target):
            publish(staged, target)
    finally:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)


class _SourceFailed(Exception):
    """What makes the parts raised an error, which is not one of the output."""

    def __init__(self, error: OSError) -> None:
        self.error = error
        super().__init__(str(error))


def _guarded(parts: Iterable[Path]) -> Iterator[Path]:
    """Yields the parts. OSErrors of what makes them are wrapped, so that they are not taken for those of the output."""
    try:
        yield from parts
    except OSError as e:
        raise _SourceFailed(e) from e


@contextlib.contextmanager
def _reporting(target: Path) -> Iterator[None]:
    """Raises errors of the file system as OUTPUT_NOT_WRITABLE, and those of what makes the parts as they are."""
    try:
        yield
    except _SourceFailed as e:
        raise e.error from None
    except FileExistsError as e:
        raise exists(str(target)) from e
    except OSError as e:
        raise _not_writable(target, e.strerror or str(e), "make room, or name another path") from e


def publish(staged: Path, target: Path) -> None:
    """Puts a file at its place in one step. If the same bytes are there already, does nothing. Raises FileExistsError if something else is
    there, and OSError."""
    try:
        os.link(staged, target)  # unlike a rename, this replaces nothing
    except FileExistsError:
        if not target.is_file() or not filecmp.cmp(staged, target, shallow=False):
            raise
    except OSError as e:
        if e.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        _publish_without_links(staged, target)
    _sync_directory(target.parent)


def _publish_without_links(staged: Path, target: Path) -> None:
    """On file systems without hard links. Between the check and the rename another process may make the file, which is replaced then."""
    if not target.exists():
        staged.rename(target)
    elif not target.is_file() or not filecmp.cmp(staged, target, shallow=False):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))


def _sync_directory(directory: Path) -> None:
    """Writes a directory to the disk, so that a new name in it survives a crash. Some file systems do not support that."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def json_line(columns: Sequence[str], row: Sequence[TupleValue]) -> str:
    """Returns a tuple as an object in a line. Integers and booleans are those of JSON, NULL is null, all else is text."""
    values = {
        name: value if value is None or isinstance(value, bool | int | str) else text_of(value)
        for name, value in zip(columns, row, strict=True)
    }
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"


def csv_line(row: Sequence[TupleValue], delimiter: str) -> str:
    """Returns a tuple as a line of CSV (RFC 4180, with a line feed). NULL is an empty field, an empty text is a quoted one."""
    return delimiter.join("" if value is None else _csv_field(text_of(value), delimiter) for value in row) + "\n"


def _csv_field(text: str, delimiter: str) -> str:
    if text and text == text.strip() and not any(c in text for c in (delimiter, '"', "\n", "\r")):
        return text
    return '"' + text.replace('"', '""') + '"'


def summary(job: JobStatus, counts: Mapping[str, int], shards: int, writer: Writer) -> str:
    """Returns the summary of an export: how many tuples, from how many shards and which commits, and where they are."""
    ops = [f"{counts[op.value]:,} {op.value}" for op in OpType if counts.get(op.value)]
    total = sum(counts.values())
    what = f"{counted(total, 'tuple')} ({', '.join(ops)})" if total else "no tuples"
    versions = job.versions
    read = f"versions {versions.first} to {versions.next - 1} in {counted(shards, 'shard')}"
    where = "no commits" if versions.is_empty else read
    window = f"from {iso(job.window.start_ms)} to before {iso(job.window.end_ms)}"
    end = "" if versions.reached_end else "; the log ended before the window did"
    return f"{what} of {where}, {window}{end}; written to {writer.target}"
