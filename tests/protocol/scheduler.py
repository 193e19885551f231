"""Runs actors one at a time, each in a thread of its own, and asks at every call into the world who goes on and what breaks."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

CALLS_MAX = 500
"""No run of a scenario comes near it: one that does is going round in circles."""

TOLD_MAX = 120
"""Lines of the trace of such a run that are shown."""

LEASE_JUMP_SECONDS = 100.0
"""How far an observer's clock goes on when a lease is found ended: longer than any lease here."""

CRASH, ORPHAN, LOST, REFUSED, FAIL, TORN = "crash", "orphan", "lost", "refused", "fail", "torn"
"""What may break at a call.

crash: process and JVM end. orphan: the process ends, its JVM finishes the call. lost: the call took effect, its answer is an exception.
refused: it took effect, and is answered as if another commit had been first. fail: it does not take effect and raises. torn: the caller
gets an exception while the JVM goes on.
"""

LATER = "later"
"""A sleeper continues with nothing having happened: a long time has passed."""


class Stopped(BaseException):
    """What an actor meets at its next call when its process is gone."""


class LostAnswer(Exception):
    """The connection broke; what became of the call is not known."""


class StatementFailed(Exception):
    """The statement's own error, before it committed: a division by zero, a conflict, a lost executor."""


@dataclass(eq=False)
class Process:
    """A consumer's process with its JVM: what it has of its own. `host`: others there can see whether it lives."""

    name: str
    pid: int
    host: str
    alive: bool = True
    jvm_alive: bool = True
    clock: float = 0.0
    mine: dict[str, Any] = field(default_factory=dict)

    def sessionUUID(self) -> str:  # noqa: N802 (Spark's name)
        """A process has one session, and stands for it."""
        return self.name


class Option(NamedTuple):
    """One way to go on. `name`: who goes on, or what breaks. `cost`: what it takes of the bounds; empty: nothing."""

    name: str
    actor: Actor
    cost: str


class Chooser(Protocol):
    """Chooses among the ways to go on; the first is the plain one."""

    def choose(self, options: Sequence[Option]) -> int:
        """The index of one of them."""


class Step(NamedTuple):
    """A call into the world that is about to take effect, and what may break there."""

    call: str
    faults: tuple[str, ...] = ()


class Actor:
    """Somebody who does things, in a thread of his own."""

    def __init__(self, name: str, process: Process, body: Callable[[], object], ready: Callable[[], bool]) -> None:
        self.name, self.process, self.body, self.ready = name, process, body, ready
        self.done = False
        self.failure: BaseException | None = None
        self.asleep: int | None = None
        self.inside = False
        self.gate = threading.Lock()
        self.gate.acquire()

    @property
    def is_ghost(self) -> bool:
        """Whether only its JVM is left."""
        return not self.process.alive


class Scheduler:
    """One run. `changes` tells how often the world was changed: a sleeper wakes when it was, or when nobody else can go on."""

    def __init__(self, chooser: Chooser, faults: frozenset[str], changes: Callable[[], int], traced: bool) -> None:
        self._chooser, self._faults, self._changes = chooser, faults, changes
        self.actors: list[Actor] = []
        self.trace: list[str] | None = [] if traced else None
        self.current = Actor("nobody", Process("nobody", 0, ""), lambda: None, lambda: True)
        self.quiet = True
        self.problem: str | None = None
        self._calls = 0
        self._aborted = False
        self._finished = threading.Lock()
        self._finished.acquire()

    # -- actors

    def add(
        self, name: str, process: Process, body: Callable[[], object], ready: Callable[[], bool] = lambda: True
    ) -> Actor:
        """One more actor, who may begin when `ready` says so."""
        actor = Actor(name, process, body, ready)
        self.actors.append(actor)
        _thread.start_new_thread(self._live, (actor,))  # a Thread takes twice as long to start, and thousands are
        return actor

    def run(self) -> None:
        """Until all actors are done."""
        self.quiet = False
        self._go_on(None)
        self._finished.acquire()
        for actor in self.actors:
            if not actor.done:
                if not self._aborted:
                    self._aborted, self.problem = True, f"{actor.name} waits for ever"
                self.current = actor
                actor.gate.release()
                self._finished.acquire()
        self.quiet = True

    def alone(self, name: str, process: Process, work: Callable[[], T]) -> T:
        """Runs something in the caller's thread, undisturbed, before or after the run."""
        self.current = Actor(name, process, lambda: None, lambda: True)
        self._calls = 0
        return work()

    def _live(self, actor: Actor) -> None:
        actor.gate.acquire()
        try:
            if not self._aborted:
                self._check_alive(actor)
                actor.body()
        except Stopped:
            self.note("ends here")
        except BaseException as e:
            actor.failure = e
        finally:
            actor.done = True
            if self._aborted:
                self._finished.release()
            else:
                self._go_on(None)

    def _enabled(self, besides: Actor | None) -> list[Actor]:
        """Who can go on; sleepers only where something happened since, or nobody else can."""
        others = [a for a in self.actors if not a.done and a is not besides]
        able = [a for a in others if a.ready() or not (a.process.alive or a.inside)]
        changes = self._changes()
        awake = [a for a in able if a.asleep is None or a.asleep != changes]
        return awake or ([] if besides is not None else able)

    def _go_on(self, leaving: Actor | None) -> None:
        """Chooses who goes on where the running actor cannot, and wakes it."""
        enabled = self._enabled(leaving)
        if not enabled:
            self._finished.release()
            return
        chosen = self._choose([Option(a.name, a, "") for a in enabled])
        self._wake(chosen.actor)

    def _wake(self, actor: Actor) -> None:
        if actor.asleep == self._changes():
            actor.process.clock += LEASE_JUMP_SECONDS
        self.current = actor
        actor.gate.release()

    def _hand_over(self, actor: Actor, to: Actor) -> None:
        self._wake(to)
        actor.gate.acquire()
        if self._aborted:
            raise Stopped
        self._check_alive(actor)

    def _check_alive(self, actor: Actor) -> None:
        process = actor.process
        if not process.jvm_alive or not (process.alive or actor.inside):
            raise Stopped

    def _choose(self, options: Sequence[Option]) -> Option:
        return options[self._chooser.choose(options)]

    # -- what the world calls in the actor's thread

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Within, nobody else goes on and nothing breaks; but where a thread of the same process may hold a lock."""
        shares = sum(a.process is self.current.process for a in self.actors) > 1
        before, self.quiet = self.quiet, self.quiet or not shares
        try:
            yield
        finally:
            self.quiet = before

    def note(self, text: str, answer: object = None) -> None:
        """A line of the trace."""
        if self.trace is not None:
            self.trace.append(f"{self.current.name}: {text}" + ("" if answer is None else f" -> {answer}"))

    def told(self) -> list[str]:
        """The trace; of a run without end, how it began."""
        trace = self.trace or []
        return trace if self.problem is None else [*trace[:TOLD_MAX], f"… ({len(trace)} lines)", self.problem]

    def before(self, step: Step) -> str | None:
        """Right before a call: others may go on first, and the call may break. Answers fail and torn, which the caller knows to do."""
        actor = self.current
        self._count()
        if self.quiet:
            return None
        self._check_alive(actor)
        options = [Option(actor.name, actor, "")]
        options += [Option(other.name, other, "preemption") for other in self._enabled(actor)]
        if actor.process.alive:
            options += [Option(f, actor, "fault") for f in step.faults if f in self._faults]
        chosen = self._choose(options)
        if chosen.actor is not actor:
            self.note(f"(is about to: {step.call})")
            self._hand_over(actor, chosen.actor)
        elif chosen.name == CRASH:
            self._crash(actor, f"CRASH before: {step.call}")
        elif chosen.name == ORPHAN:
            self.note(f"THE PROCESS ENDS, its JVM continues with: {step.call}")
            actor.process.alive = False
            self._yield(actor)
        elif chosen.name in (FAIL, TORN):
            self.note(f"{chosen.name.upper()} at: {step.call}")
            return chosen.name
        return None

    def after(self, text: str, answer: object, faults: Sequence[str]) -> str | None:
        """Right after a call took effect: its process may die, its answer get lost. Answers REFUSED, which the caller knows to do."""
        self.note(text, answer)
        actor = self.current
        if self.quiet or not actor.process.alive:
            return None
        options = [Option(actor.name, actor, "")]
        options += [Option(f, actor, "fault") for f in faults if f in self._faults]
        chosen = self._choose(options)
        if chosen.name == CRASH:
            self._crash(actor, "CRASH after it")
        if chosen.name == LOST:
            self.note("... the answer is LOST")
            raise LostAnswer("the connection broke")
        if chosen.name == REFUSED:
            self.note("... which is answered as a conflict")
            return REFUSED
        return None

    def _crash(self, actor: Actor, how: str) -> None:
        self.note(how)
        actor.process.alive = actor.process.jvm_alive = False
        raise Stopped

    def call(self, work: Generator[Step, None, T]) -> T:
        """Runs a call that takes several steps, in the JVM; whose process died meanwhile does not hear the answer."""
        actor = self.current
        if not self.quiet:
            self._check_alive(actor)
        outermost, actor.inside = not actor.inside, True
        try:
            return self._steps(work)
        finally:
            if outermost:
                actor.inside = False
                if not actor.process.alive:
                    raise Stopped

    def _steps(self, work: Generator[Step, None, T]) -> T:
        try:
            step = next(work)
            while True:
                broken = self.before(step)
                if broken == FAIL:
                    work.close()
                    raise StatementFailed("the statement failed")
                if broken == TORN:
                    self._leave_to_ghost(work, step)
                step = next(work)
        except StopIteration as end:
            answer: T = end.value
            return answer

    def _leave_to_ghost(self, work: Generator[Step, None, T], step: Step) -> None:
        def go_on() -> None:
            while True:
                self.before(Step(step.call))
                try:
                    next(work)
                except StopIteration:
                    return

        ghost = self.add(f"{self.current.name}-jvm", self.current.process, go_on)
        ghost.inside = True
        raise LostAnswer("the connection broke, and the JVM goes on")

    def sleep(self, seconds: float) -> None:
        """Gives way; goes on when something happened, when nobody else can, or by a jump of its clock: a lease found ended."""
        actor = self.current
        self._count()
        actor.process.clock += seconds
        if self.quiet:
            actor.process.clock += LEASE_JUMP_SECONDS
            return
        actor.asleep = self._changes()
        others = self._enabled(actor)
        living = any(not o.is_ghost for o in others)
        itself = Option(LATER, actor, "lease" if living else "")
        chosen = self._choose([Option(o.name, o, "") for o in others] + [itself])
        if chosen.actor is actor:
            self.note("... a long time passes")
            actor.process.clock += LEASE_JUMP_SECONDS
        else:
            self.note("sleeps")
            self._hand_over(actor, chosen.actor)
        actor.asleep = None

    def wait(self, actor_may: Callable[[], bool]) -> None:
        """Blocks the running actor until a condition holds."""
        actor = self.current
        self._count()
        if self.quiet:
            return
        self._check_alive(actor)
        if not actor_may():
            self.give_way(actor_may)

    def give_way(self, actor_may: Callable[[], bool]) -> None:
        """Lets others go on first, and goes on when the condition holds."""
        actor = self.current
        actor.ready = actor_may
        self._yield(actor)
        actor.ready = lambda: True

    def _yield(self, actor: Actor) -> None:
        enabled = self._enabled(actor) + ([actor] if actor.ready() else [])
        if not enabled:
            self._abort("all wait for one another")
        chosen = self._choose([Option(a.name, a, "") for a in enabled])
        if chosen.actor is not actor:
            self._hand_over(actor, chosen.actor)

    def _count(self) -> None:
        if self._aborted:
            raise Stopped
        self._calls += 1
        if self._calls > CALLS_MAX:
            self._abort("goes round in circles")

    def _abort(self, why: str) -> None:
        self.problem = f"{self.current.name} {why}"
        self._aborted = True
        raise Stopped
