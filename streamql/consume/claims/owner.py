"""Who consumes: this process, and whether another one is provably dead."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from streamql.catalog.identity import host_name, user_of
from streamql.catalog.states import Owner

_token = (os.getpid(), str(uuid.uuid4()))


def this_owner(spark: SparkSession) -> Owner:
    """This process. A forked child is another owner than its parent."""
    global _token
    if _token[0] != os.getpid():
        _token = (os.getpid(), str(uuid.uuid4()))
    return Owner(_token[1], _host(), os.getpid(), _started(os.getpid()) or "", user_of(spark))


class Work:
    """One piece of work of this process on a consumption. Each session has its own: a session that resumes a consumption does not stop when
    the earlier one closes."""

    def __init__(self, consumption_id: str) -> None:
        self.consumption_id = consumption_id


_working: set[Work] = set()


@contextmanager
def running(consumption_id: str) -> Iterator[Work]:
    """While it lasts, this process is at work on the consumption; a claim of this process without work on it is abandoned."""
    work = Work(consumption_id)
    _working.add(work)
    try:
        yield work
    finally:
        _working.discard(work)


def stop_running(work: Work) -> None:
    """Ends a piece of work before its context ends."""
    _working.discard(work)


def is_running_here(owner: Owner, consumption_id: str) -> bool | None:
    """Returns whether this process is at work on it; None: it is another process's."""
    if owner.token != _token[1]:
        return None
    return any(work.consumption_id == consumption_id for work in tuple(_working))


def is_this_process(owner: Owner) -> bool:
    """Returns whether an owner is this process."""
    return owner.token == _token[1]


def is_dead(owner: Owner) -> bool:
    """Returns whether the process is provably gone: it ran on this host, and no process has its id and start time. A guess that is wrong
    costs the owner its statement, never a row."""
    if not is_of_this_host(owner) or not owner.started:
        return False
    started = _started(owner.pid)
    return started is None or started not in (_UNSEEN, owner.started)


def is_suspended(owner: Owner) -> bool:
    """Returns whether the process was stopped (SIGSTOP, Ctrl-Z) and not continued, where that can be seen."""
    try:
        state = Path(f"/proc/{owner.pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return is_of_this_host(owner) and state in ("T", "t") and not is_dead(owner)


def is_of_this_host(owner: Owner) -> bool:
    """Returns whether this process can see if the owner's lives."""
    return owner.host == _host()


def _host() -> str:
    """Returns where process ids mean what they mean here: on this host, until it is started again, in this container (containers may share
    the name and the kernel's start of their host)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ids = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return host_name()
    return f"{host_name()}/{boot}/{ids}"


_UNSEEN = "unseen"


def _started(pid: int) -> str | None:
    """Returns when a process was started, as the kernel says it; None: there is no such process, or it is a zombie. _UNSEEN: there is one,
    and no more is to be seen of it (no /proc here, or one that hides what others run)."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state in ("Z", "X") else fields[18]
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return _UNSEEN
