"""The owners of claims: this process as an owner, and whether the process of another owner is provably dead."""

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
    """Returns this process as an owner. A forked child is another owner than its parent."""
    global _token
    if _token[0] != os.getpid():
        _token = (os.getpid(), str(uuid.uuid4()))
    return Owner(_token[1], _host(), os.getpid(), _started(os.getpid()) or "", user_of(spark))


class Work:
    """Notes that a session of this process works on a consumption. Each session has an object of its own: if one session has taken a
    consumption over from another one, the end of the other one's work must not end its own."""

    def __init__(self, consumption_id: str) -> None:
        self.consumption_id = consumption_id


_working: set[Work] = set()


@contextmanager
def running(consumption_id: str) -> Iterator[Work]:
    """Notes, for the duration of the body, that this process works on the consumption. Other threads take a claim of this process for
    abandoned if the process does not work on it."""
    work = Work(consumption_id)
    _working.add(work)
    try:
        yield work
    finally:
        _working.discard(work)


def stop_running(work: Work) -> None:
    """Ends the work before the body of its `running` ends."""
    _working.discard(work)


def is_running_here(owner: Owner, consumption_id: str) -> bool | None:
    """Returns whether this process works on the consumption; None: the owner is another process."""
    if owner.token != _token[1]:
        return None
    return any(work.consumption_id == consumption_id for work in tuple(_working))


def is_this_process(owner: Owner) -> bool:
    """Returns whether an owner is this process."""
    return owner.token == _token[1]


def is_dead(owner: Owner) -> bool:
    """Returns whether the process is provably dead: it ran on this host, and no process has its id and start time now. If that is ever
    wrong, the statement of the living process fails (it is fenced), and no row is lost or doubled."""
    if not is_of_this_host(owner) or not owner.started:
        return False
    started = _started(owner.pid)
    return started is None or started not in (_UNSEEN, owner.started)


def is_suspended(owner: Owner) -> bool:
    """Returns whether the process is stopped (SIGSTOP, Ctrl-Z). False if this process cannot see that: on another host, or without
    /proc."""
    try:
        state = Path(f"/proc/{owner.pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return is_of_this_host(owner) and state in ("T", "t") and not is_dead(owner)


def is_of_this_host(owner: Owner) -> bool:
    """Returns whether this process sees the processes of the owner's host, and so whether the owner's is alive."""
    return owner.host == _host()


def _host() -> str:
    """Returns a text that is equal for processes that see the same process ids: those of one start of one host, in one container. The name
    of the host and the start of its kernel are not enough, because containers may share both."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ids = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return host_name()
    return f"{host_name()}/{boot}/{ids}"


_UNSEEN = "unseen"


def _started(pid: int) -> str | None:
    """Returns when a process was started, as the kernel says it. None: there is no such process, or it is a zombie. _UNSEEN: the process
    exists, but its start is not visible (there is no /proc, or it hides the processes of other users)."""
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
