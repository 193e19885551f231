"""Puts a world in place of what modules of the product keep for themselves or ask the machine: clocks, ids, processes, threads."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import pytest

import streamql.catalog.store as store
import streamql.consume.claims.heartbeat as heartbeat
import streamql.consume.claims.liveness as liveness
import streamql.consume.claims.owner as owner
import streamql.consume.claims.steps as claims
import streamql.consume.claims.waiting as waiting
import streamql.consume.consumption as consumption
import streamql.consume.session_transactions as session_transactions
import streamql.consume.targets as targets
import streamql.consume.transaction as transaction
import streamql.delta.jvm as jvm
import streamql.engine.ddl as ddl
import streamql.features as features
import streamql.sources.tables.table as sources
import streamql.times as times
from streamql.delta import txns
from streamql.model import Interval, Versions
from tests.protocol.jvm import Node
from tests.protocol.pair import FEATURE
from tests.protocol.scheduler import Actor, Process
from tests.protocol.statements import ChangeSet
from tests.protocol.world import World

GARBAGE_MAX = 20_000
"""Runs leave garbage by the thousand, none of it old: looking for it less often takes a fifth off their time."""

BEGIN_SECONDS = 1_700_000_000
"""When each run begins, in seconds since 1970."""


class Stage:
    """The world that is on; the patches look here, so that they are made once for many runs."""

    def __init__(self) -> None:
        self._world: World | None = None
        self._readings = 0

    @property
    def world(self) -> World:
        """The world that is on."""
        assert self._world is not None
        return self._world

    def show(self, world: World) -> None:
        """From now on."""
        self._world = world
        self._readings = 0
        store._catalogs.clear()
        jvm._packages.clear()  # its values hold the worlds that are over

    @property
    def process(self) -> Process:
        """The process of the actor that runs."""
        return self.world.scheduler.current.process

    def wall_clock(self) -> int:
        """Seconds since 1970, the same in each run: whether two events have the same time decides whether they are equal. Two readings in
        succession are often equal, as on a machine."""
        self._readings += 1
        return BEGIN_SECONDS + self._readings // 2


class OwnDict(MutableMapping[str, Any]):
    """A module's dictionary, one for each process."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self._name = stage, name

    def _own(self) -> dict[str, Any]:
        own: dict[str, Any] = self._stage.process.mine.setdefault(self._name, {})
        return own

    def __getitem__(self, key: str) -> Any:
        return self._own()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._own()[key] = value

    def __delitem__(self, key: str) -> None:
        del self._own()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._own())

    def __len__(self) -> int:
        return len(self._own())


class OwnSet(OwnDict):
    """A module's set, one for each process."""

    def add(self, item: object) -> None:
        """As a set has it."""
        self[item] = True

    def discard(self, item: object) -> None:
        """As a set has it."""
        self.pop(item, None)


class OwnToken:
    """owner._token: (process id, token), of the process that runs."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __getitem__(self, index: int) -> Any:
        process = self._stage.process
        return (process.pid, f"token of {process.name}")[index]


class Thread:
    """threading.Thread for heartbeats: an actor, where the scenario has any beats."""

    def __init__(self, stage: Stage, target: Callable[[], None], name: str, daemon: bool) -> None:
        self._stage, self._target = stage, target
        self._actor: Actor | None = None

    def start(self) -> None:
        """From now on it may be chosen to go on."""
        world = self._stage.world
        if world.beats and not world.scheduler.quiet:
            name = f"{world.scheduler.current.name}-heartbeat"
            self._actor = world.scheduler.add(name, world.scheduler.current.process, self._target)

    def join(self) -> None:
        """Waits until it has ended."""
        actor = self._actor
        if actor is not None:
            self._stage.world.scheduler.wait(lambda: actor.done)


class Event:
    """threading.Event of a heartbeat: waiting ends when it is set, or when the scheduler finds that the time is over."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._is_set = False
        self._left = stage.world.beats
        self._waited = False

    def set(self) -> None:
        """The heartbeat shall stop."""
        self._is_set = True

    def wait(self, timeout: float) -> bool:
        """Whether it is set; False once more for each beat that the scenario has."""
        if self._waited:
            self._stage.world.scheduler.give_way(lambda: self._is_set or self._left > 0)
        self._waited = True
        self._left -= 1
        if not self._is_set:
            self._stage.world.met["heartbeat"] += 1
        return self._is_set


class Lock:
    """threading.RLock of a catalog, which all threads of a process share: whoever waits for it yields."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._holder: Actor | None = None
        self._depth = 0

    def __enter__(self) -> None:
        me = self._stage.world.scheduler.current
        if self._holder is not me:
            self._stage.world.scheduler.wait(lambda: self._holder is None)
        self._holder = me
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None


@contextmanager
def stage() -> Iterator[Stage]:
    """The product's modules over whatever world is shown."""
    on = Stage()
    thresholds = gc.get_threshold()
    with pytest.MonkeyPatch.context() as patch:
        _patch_clocks(on, patch)
        _patch_processes(on, patch)
        patch.setattr(store, "_catalogs", {})
        patch.setattr(jvm, "_packages", WeakKeyDictionary())
        patch.setattr(sources, "change_set", _change_set)
        patch.setattr(txns, "frame", lambda _, rows: rows)
        patch.setattr(features, "FEATURES", (*features.FEATURES, FEATURE))
        gc.freeze()
        gc.set_threshold(GARBAGE_MAX)
        level = logging.getLogger("streamql").level
        logging.getLogger("streamql").setLevel(
            logging.CRITICAL
        )  # warnings are part of what is tried, thousands of times
        try:
            yield on
        finally:
            logging.getLogger("streamql").setLevel(level)
            gc.unfreeze()
            gc.set_threshold(*thresholds)


def _patch_clocks(on: Stage, patch: pytest.MonkeyPatch) -> None:
    clock = Node(
        monotonic=lambda: on.process.clock,
        time=lambda: on.process.clock,
        sleep=lambda seconds: on.world.scheduler.sleep(seconds),
    )
    for module in (transaction, claims, liveness, waiting, targets, store):
        patch.setattr(module, "time", clock)
    patch.setattr(times, "time", Node(time=on.wall_clock))
    beating = Node(
        Thread=lambda target, name, daemon: Thread(on, target, name, daemon),
        Event=lambda: Event(on),
        Lock=threading.Lock,
    )
    patch.setattr(heartbeat, "threading", beating)
    patch.setattr(store, "threading", Node(RLock=lambda: Lock(on)))
    patch.setattr(consumption, "uuid", Node(uuid4=lambda: on.world.consumption_begins()))
    patch.setattr(ddl, "uuid", Node(uuid4=lambda: on.world.fresh("stream")))


def _patch_processes(on: Stage, patch: pytest.MonkeyPatch) -> None:
    def started(pid: int) -> str | None:
        living = [p for p in on.world.processes if p.pid == pid and p.alive]
        return f"start of {living[0].name}" if living else None

    patch.setattr(owner, "_token", OwnToken(on))
    patch.setattr(owner, "_working", OwnSet(on, "working"))
    patch.setattr(store.Catalog, "_show_here", lambda *_: None)
    patch.setattr(owner, "_host", lambda: on.process.host)
    patch.setattr(owner, "_started", started)
    patch.setattr(owner, "os", Node(getpid=lambda: on.process.pid))
    patch.setattr(liveness, "_watched", OwnDict(on, "watched"))
    patch.setattr(waiting, "Waiting", lambda spark: Node(is_cancelled=lambda: False))
    patch.setattr(session_transactions, "_open", OwnDict(on, "transactions"))


def _change_set(spark: object, path: str, versions: Versions, *_: object) -> ChangeSet:
    return ChangeSet(path, Interval(versions.after, versions.through, versions.initial))
