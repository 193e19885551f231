"""The words that scenarios are written in: who acts, what they do, what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.protocol.explore import Bounds, Scenario
from tests.protocol.scheduler import CRASH, FAIL, LOST, ORPHAN, REFUSED, TORN, Process
from tests.protocol.world import EVENTS, OnError, World

Act = Callable[[World, Process], None]


@dataclass(frozen=True)
class Who:
    """An actor. `host`: where its process runs; others there see whether it lives. `process`: one that several actors share."""

    name: str
    does: Act
    host: str = "here"
    process: str = ""

    def enter(self, world: World, *, late: bool = False) -> None:
        """Into a world; `late`: begins when all others have ended, or only their JVMs are left."""
        shared = [p for p in world.processes if p.name == self.process]
        process = shared[0] if shared else world.process(self.process or self.name, self.host)
        others = list(world.scheduler.actors)
        ready = (lambda: all(o.done or o.is_ghost for o in others)) if late else (lambda: True)
        world.scheduler.add(self.name, process, lambda: self.does(world, process), ready)


def insert(target: str, *streams: str) -> Act:
    """INSERT INTO target SELECT … FROM the streams."""
    return lambda world, process: world.insert(process, target, *streams)


def create(target: str, *streams: str, operation: str = "CTAS") -> Act:
    """CREATE TABLE target AS SELECT … FROM the streams; RTAS: CREATE OR REPLACE TABLE."""
    return lambda world, process: world.create(process, target, *streams, operation=operation)


def query(*streams: str) -> Act:
    """SELECT … FROM the streams WITH CONSUME."""
    return lambda world, process: world.query(process, *streams)


def block(*streams: str, on_error: OnError = "stop") -> Act:
    """BEGIN TRANSACTION; INSERT INTO x …; INSERT INTO y …; COMMIT. ROLLBACK if something fails, unless `on_error` says otherwise."""
    return lambda world, process: world.block(process, ("x", "y"), *streams, on_error=on_error)


def inserts(*streams: str) -> Act:
    """FROM the streams INSERT INTO x … INSERT INTO y …."""
    return lambda world, process: world.inserts(process, ("x", "y"), *streams)


def refresh(target: str, stream: str) -> Act:
    """REFRESH of a dynamic table, by its hidden stream."""
    return lambda world, process: world.refresh(process, target, stream)


def ddl(text: str) -> Act:
    """One of our own statements."""
    return lambda world, process: world.ddl(process, text)


def writes(table: str) -> Act:
    """Somebody appends to a table."""
    return lambda world, process: world.write(table)


def remake(target: str) -> Act:
    """A person drops a table and makes another one of its name, at its path."""

    def does(world: World, process: Process) -> None:
        world.drop(target)
        world.remake(target)

    return does


def drop_and_say(target: str, text: str) -> Act:
    """A person drops a table, and says then where the stream shall be."""

    def does(world: World, process: Process) -> None:
        world.drop(target)
        world.ddl(process, text)

    return does


def replace_table(target: str) -> Act:
    """A person's CREATE OR REPLACE TABLE: another table id, the same log."""
    return lambda world, process: world.replace(target)


def streams(*names: str, targets: tuple[str, ...] = ("x",), initial: bool = False) -> Callable[[World], None]:
    """A source with two changes and a stream for each name, targets, and the one that is drained into."""

    def made(world: World) -> None:
        for name in names:
            world.source(f"t_{name}", name, 2, initial)
        for target in (*targets, "rest"):
            world.table(target)

    return made


def pair(*targets: str, type_name: str = "pair") -> Callable[[World], None]:
    """A source of two parts with two changes in each, a stream `s` on it, and targets."""

    def made(world: World) -> None:
        world.pair("s", 2, type_name)
        for target in (*targets, "rest"):
            world.table(target)

    return made


def drain(*names: str) -> Callable[[World], None]:
    """A healthy consumer for each stream, alone, until nothing is left."""

    def does(world: World) -> None:
        for name in names:
            process = world.process(f"drain of {name}")
            world.scheduler.alone(process.name, process, partial(world.insert, process, "rest", name))

    return does


def scene(
    name: str,
    there: Callable[[World], None],
    *actors: Who,
    then: Act | None = None,
    left: tuple[str, ...] = ("s",),
    last: Act | None = None,
    faults: frozenset[str] = frozenset(),
    bounds: Bounds | None = None,
    schedules: int = 200,
    meets: str = "",
    also: Callable[[World], None] = lambda world: None,
) -> Scenario:
    """A scenario: what is there, who acts, a consumer that comes `then`, and, undisturbed, what comes `last`, and consumers that drain the
    streams of what is `left`."""

    def enter(world: World) -> None:
        also(world)
        for actor in actors:
            actor.enter(world)
        if then is not None:
            Who("next", then).enter(world, late=True)

    met = frozenset(word.strip() for word in meets.split(",") if word)

    def drained(world: World) -> None:
        if last is not None:
            process = world.process("the last")
            world.scheduler.alone(process.name, process, lambda: last(world, process))
        drain(*left)(world)

    return Scenario(name, there, enter, drained, faults, bounds or Bounds(), schedules, met)


DEATHS = frozenset({CRASH, ORPHAN})
ALL = DEATHS | {LOST, REFUSED, FAIL, TORN}
TWICE = Bounds(preemptions=2, faults=2, leases=1, deviations=3)


def written(world: World) -> None:
    """Somebody writes to the sources, so that reading them is an occasion for others to go on."""
    world.still = {EVENTS}


def repeated(world: World) -> None:
    """Changes may come again."""
    world.repeats = True


def residual(world: World) -> None:
    """A run may end with a person being told to look."""
    world.residual = True


def resolved(world: World) -> None:
    """A person drops a target and sets an offset: both."""
    world.repeats = world.residual = True


def beating(world: World) -> None:
    """Each heartbeat may beat twice."""
    world.beats = 2


ONE = streams("s")
TWO = streams("a", "b")
FRESH = streams("s", targets=())
TWO_FRESH = streams("a", "b", targets=())
TWO_TARGETS = streams("s", targets=("x", "y"))
INITIAL = streams("s", initial=True)
