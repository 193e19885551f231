"""Who is provably dead, and who is only out of sight."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from streamql.catalog.states import Owner
from streamql.consume.claims import owner
from streamql.consume.claims.owner import is_dead, is_of_this_host


def owner_of(pid: int) -> Owner:
    return Owner("token", owner._host(), pid, owner._started(pid) or "", "somebody")


def test_a_process_that_ended_is_dead_also_where_nobody_has_asked_how() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        one = owner_of(child.pid)
        assert not is_dead(one)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie from here on
        assert is_dead(one)
    assert is_dead(one)


def test_another_process_of_the_same_id_is_not_it() -> None:
    assert is_dead(replace(owner_of(os.getpid()), started="1"))
    assert not is_dead(owner_of(os.getpid()))


def test_a_container_with_ids_of_its_own_is_out_of_sight() -> None:
    here = owner_of(os.getpid())
    name, boot, _ = here.host.split("/")
    there = replace(here, host=f"{name}/{boot}/pid:[1]", pid=2**22 + 1)
    assert not is_of_this_host(there)
    assert not is_dead(there)


def test_what_others_run_may_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    one = owner_of(os.getpid())
    monkeypatch.setattr(Path, "read_text", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert owner._started(os.getpid()) == "unseen"
    monkeypatch.setattr(owner, "_host", lambda: one.host)
    assert not is_dead(one)
