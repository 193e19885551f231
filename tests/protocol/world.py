"""Everything a run has: tables, processes with their JVMs, actors, and what became of their statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast

from pyspark.sql import SparkSession

from streamql import engine
from streamql.catalog import tables
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.consume import consume, session_transactions, wait_until_free
from streamql.delta.command import Command
from streamql.errors import StreamqlError
from streamql.model import Interval, Parts, Position
from streamql.names import Name
from streamql.reading import StreamReading, read_stream
from streamql.sources.registry import open_source
from tests.protocol.jvm import BEFORE, Package, Session
from tests.protocol.logs import Commit, DeltaError, Log, Storage, metadata
from tests.protocol.pair import PARTS, PREFIXES
from tests.protocol.scheduler import LOST, Chooser, Process, Scheduler, Step
from tests.protocol.statements import ConsumeCommand, Read, Write

T = TypeVar("T")
OnError = Literal["stop", "continue", "correct"]

CATALOG = "/catalog"
EVENTS = f"{CATALOG}/{tables.EVENTS}"
TRACKED = {"delta.enableRowTracking": "true"}
SETTINGS = {
    "spark.streamql.catalog": "streamql",
    "spark.streamql.catalogLocation": CATALOG,
    "spark.streamql.busyTimeout": "1h",
    "spark.streamql.lease": "60s",
}


@dataclass
class Outcome:
    """What became of a statement. `ids`: of its consumptions. `took`: the rows it ran with; `rows`: those it returned. `error` is None
    where it returned. `is_one`: it is one statement, whose consumption is its own; a block may resume another one's."""

    actor: str
    text: str
    ids: list[str] = field(default_factory=list)
    took: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    error: BaseException | None = None
    ended: bool = False
    is_one: bool = True

    @property
    def code(self) -> str:
        """The error's code; empty where there is none; the class of errors that are not ours."""
        if self.error is None:
            return ""
        return self.error.code if isinstance(self.error, StreamqlError) else type(self.error).__name__


class World:
    """One run's state. `still`: paths where nobody writes, so that reading them is no occasion for others to go on. `beats`: how often each
    heartbeat may beat. `repeats`: somebody sets an offset back, so that changes come again. `residual`: somebody drops a target, so that
    a run may end with a person being told to look. `drains`: how many of the last outcomes are those of the final drain.
    `together`: paths that get each row, all of them.
    """

    def __init__(self, chooser: Chooser, faults: frozenset[str], traced: bool = False) -> None:
        self.storage = Storage()
        self.scheduler = Scheduler(chooser, faults, lambda: self.storage.changes, traced)
        self.processes: list[Process] = []
        self.still: set[str] = {EVENTS}
        self.beats = 0
        self.repeats = False
        self.residual = False
        self.drains = 0
        self.together: tuple[str, ...] = ()
        self.met: Counter[str] = Counter()
        self.accusations: list[str] = []
        self.outcomes: list[Outcome] = []
        self._made: Counter[str] = Counter()
        self.storage.create(EVENTS, Commit("CREATE TABLE", metadata=metadata("events", {tables.VERSION_KEY: "1"})))

    # -- for the JVM and the stage

    def fresh(self, prefix: str) -> str:
        """An id that nothing else has; the same ones in each run."""
        self._made[prefix] += 1
        return f"{prefix}-{self._made[prefix]}"

    def look(self, call: str, work: Callable[[], T]) -> T:
        """A call that changes nothing."""
        self.scheduler.before(Step(call))
        answer = work()
        self.scheduler.note(call, answer)
        return answer

    def accuse(self, what: str) -> None:
        """Something happened that must not, seen when it did."""
        self.scheduler.note(f"WRONG: {what}")
        self.accusations.append(what)

    def changes(self, uuid: str, path: str, interval: Interval) -> list[str]:
        """The rows that a stream shows over an interval: one for each version that wrote, and one for the table as it was."""
        initial = [f"{uuid}:initial"] if interval.initial else []
        if isinstance(interval.after, Parts) and isinstance(interval.through, Parts):
            begin, rows = dict(interval.after.numbers), initial
            for (part, through), one in zip(interval.through.numbers, path.split("+"), strict=True):
                rows += [f"{uuid}:{part} {version}" for version in self._wrote(one, begin[part], through)]
            return rows
        versions = interval.versions
        return initial + [f"{uuid}:{version}" for version in self._wrote(path, versions.after, versions.through)]

    def _wrote(self, path: str, after: int, through: int) -> list[int]:
        commits = self.storage.newest(path).upto()
        return [v for v in range(after + 1, through + 1) if commits[v].rows]

    def latest(self, path: str) -> Position:
        """Where a source is, by its path: a table, or the tables of a pair."""
        versions = [self.storage.newest(one).number for one in path.split("+")]
        return versions[0] if len(versions) == 1 else Parts.of(dict(zip(PARTS, versions, strict=True)))

    def dropping(self, name: str, *, by_product: bool = False) -> Generator[Step, None, None]:
        """DROP TABLE, which takes the rows along; what the product drops must have none."""
        yield Step(f"drops table {name}", BEFORE if by_product else ())
        dropped = self.storage.drop(name)
        if by_product and dropped is not None and dropped.rows():
            self.accuse(f"the product dropped {name} with rows: {sorted(dropped.rows())}")
        self.scheduler.after(f"drops table {name}", None, (LOST,) if by_product else ())

    # -- what there is at the beginning

    def begin_as(self, other: World) -> None:
        """With the tables and streams of a world where nothing happened yet: making them takes longer than most runs."""
        self.storage, self.still, self._made = other.storage.copy(), set(other.still), Counter(other._made)

    def process(self, name: str, host: str = "here") -> Process:
        """A process with a JVM and a session; the stage asks `mine` for what modules keep of their own."""
        process = Process(name, 100 + len(self.processes), host)
        self.processes.append(process)
        process.mine["session"] = Session(self, process, Package(self), SETTINGS)
        return process

    def table(self, name: str, tracked: bool = False) -> str:
        """An empty table; its path."""
        path = f"/data/{name}"
        self.storage.create(
            path, Commit("CREATE TABLE", metadata=metadata(self.fresh("table"), TRACKED if tracked else {}))
        )
        self.storage.names[name] = path
        return path

    def source(self, name: str, stream: str, versions: int, initial: bool) -> None:
        """A table with change tracking, a stream on it, and versions written since."""
        self.still.add(self.table(name, tracked=True))
        session = session_of(self.process(f"maker of {stream}"))
        ddl = f"CREATE STREAM {stream} ON TABLE {name}" + (" SHOW_INITIAL_ROWS = TRUE" if initial else "")
        self.scheduler.alone("maker", self.processes[-1], lambda: engine.run(session, ddl))
        for _ in range(versions):
            self.append(name, "change")

    def pair(self, stream: str, versions: int, type_name: str) -> None:
        """A source of two tables of a type, a stream on it, and versions written into both since."""
        names = [f"{stream}_{part}" for part in PARTS]
        self.still.update(self.table(name, tracked=True) for name in names)
        session = session_of(self.process(f"maker of {stream}"))
        ddl = f"CREATE STREAM {stream} ON TABLE {PREFIXES[type_name]}{stream}"
        self.scheduler.alone("maker", self.processes[-1], lambda: engine.run(session, ddl))
        for name in names * versions:
            self.append(name, "change")

    def append(self, name: str, row: str) -> None:
        """A commit of somebody who has nothing to do with streams."""
        newest = self.storage.newest(self.storage.names.get(name, ""))
        if newest.number < 0:
            raise DeltaError(f"TABLE_OR_VIEW_NOT_FOUND: {name}")
        self.storage.commit(newest, Commit("WRITE", self.scheduler.current.name, rows=(row,)))

    # -- what actors do

    def insert(self, process: Process, target: str, *streams: str) -> None:
        """INSERT INTO target SELECT … FROM the streams."""
        text = f"INSERT INTO {target} FROM {', '.join(streams)}"
        self.consume(process, text, streams, lambda: [self.appends(target)])

    def create(self, process: Process, target: str, *streams: str, operation: str = "CTAS") -> None:
        """CREATE [OR REPLACE] TABLE target AS SELECT … FROM the streams."""
        writes = [Write(operation, target, f"/data/{target}")]
        self.consume(process, f"{operation} {target} FROM {', '.join(streams)}", streams, lambda: writes)

    def query(self, process: Process, *streams: str) -> None:
        """SELECT … FROM the streams WITH CONSUME."""
        self.consume(process, f"SELECT FROM {', '.join(streams)}", streams, list)

    def consume(
        self,
        process: Process,
        text: str,
        streams: Sequence[str],
        analyse: Callable[[], Sequence[Write]],
        *,
        is_one: bool = True,
    ) -> None:
        """A statement that consumes: analysed by the real reading of streams, then run by the real protocol."""
        spark = session_of(process)
        outcome = self._outcome(text)
        outcome.is_one = is_one
        try:
            self._statement(spark, outcome, text, streams, analyse)
        except Exception as e:
            outcome.error = e
        outcome.ended = True
        self._tell(outcome)

    def _statement(
        self,
        spark: SparkSession,
        outcome: Outcome,
        text: str,
        streams: Sequence[str],
        analyse: Callable[[], Sequence[Write]],
    ) -> None:
        self._run(spark, outcome, text, lambda: [self.read(spark, s, text) for s in streams], analyse)

    def _run(
        self,
        spark: SparkSession,
        outcome: Outcome,
        text: str,
        read: Callable[[], Sequence[Read]],
        analyse: Callable[[], Sequence[Write]],
    ) -> None:
        command = self.look("analyses the statement", lambda: ConsumeCommand(self, text, read(), analyse()))
        outcome.took = command.took
        outcome.rows = list(consume(spark, Command(spark, command)))

    def refresh(self, process: Process, target: str, stream: str) -> None:
        """REFRESH of a dynamic table: its hidden stream is waited for, and then read through the newest versions, if it has not moved."""
        spark = session_of(process)
        outcome = self._outcome(f"REFRESH {target}")
        try:
            state = catalog_of(spark).find(spark, Name("spark_catalog", "db", stream))
            assert state is not None
            state = wait_until_free(spark, state)
            through = self.look("looks at the sources", lambda: self.latest(state.stream.source.path))
            if isinstance(through, Parts) and through != state.offset.position:
                read = self._refreshed(spark, state, through)
                self._run(spark, outcome, outcome.text, lambda: [read], lambda: [self.appends(target)])
        except Exception as e:
            outcome.error = e
        outcome.ended = True
        self._tell(outcome)

    def _refreshed(self, spark: SparkSession, state: StreamState, through: Parts) -> Read:
        with self.scheduler.undisturbed():
            source = open_source(spark, state.stream.source)
            interval = Interval(state.offset.position, through, state.offset.initial)
            rows = source.changes(interval, state.stream.mode)
        return Read(StreamReading(state, interval, source.seen_at(through), rows).description, rows)  # type: ignore[arg-type]  # a ChangeSet stands for the frame

    def inserts(self, process: Process, targets: Sequence[str], *streams: str) -> None:
        """FROM the streams INSERT INTO each of the targets."""
        text = f"FROM {', '.join(streams)} INSERT INTO {', '.join(targets)}"
        self.consume(process, text, streams, lambda: [self.appends(t) for t in targets], is_one=False)

    def block(self, process: Process, targets: Sequence[str], *streams: str, on_error: OnError = "stop") -> None:
        """A transaction with an INSERT into each of the targets. A failed INSERT stops it, is skipped by the script (`continue`), or is
        withdrawn and run in other words (`correct`). Rolled back if it does not come to its COMMIT."""
        spark = session_of(process)
        outcome = self._outcome(f"a block into {', '.join(targets)} FROM {', '.join(streams)}")
        outcome.is_one = False
        try:
            engine.run(spark, "BEGIN TRANSACTION")
            for t in targets:
                self._into(spark, outcome, t, streams, on_error)
            engine.run(spark, "COMMIT")
        except Exception as e:
            if on_error == "continue" and isinstance(e, StreamqlError) and e.code == "INVALID_TRANSACTION_STATE":
                self.met["COMMIT refused"] += 1
            else:
                outcome.error = e
            with suppress(Exception):
                engine.run(spark, "ROLLBACK")
        outcome.ended = True
        self._tell(outcome)

    def _into(
        self, spark: SparkSession, outcome: Outcome, target: str, streams: Sequence[str], on_error: OnError
    ) -> None:
        """One INSERT of a block."""

        def insert(words: str = "") -> None:
            text = f"INSERT INTO {target} FROM {', '.join(streams)}{words}"
            self._statement(spark, outcome, text, streams, lambda: [self.appends(target)])

        try:
            insert()
        except Exception as e:
            code = e.code if isinstance(e, StreamqlError) else ""
            if on_error == "stop" or code not in ("", "STATEMENT_COMMITTED", "CONSUMPTION_PARTIALLY_COMMITTED"):
                raise
            if on_error == "continue":
                return
            if code != "STATEMENT_COMMITTED":
                try:
                    engine.run(spark, "ROLLBACK STATEMENT")
                except StreamqlError as refused:
                    if refused.code == "STATEMENT_COMMITTED":
                        return
                    raise
            insert(" corrected")

    def appends(self, target: str) -> Write:
        path = self.storage.names.get(target)
        if path is None:
            raise DeltaError(f"TABLE_OR_VIEW_NOT_FOUND: {target}")
        return Write("AppendData", target, path, self.storage.newest(path).id())

    def read(self, spark: SparkSession, stream: str, pin: str) -> Read:
        """What the analyser makes of a stream's name. At one go: what others do meanwhile, they may as well do right after."""
        with self.scheduler.undisturbed():
            reading = self._reading(spark, stream, pin)
        return Read(reading.description, reading.frame)  # type: ignore[arg-type]  # a ChangeSet stands for the frame

    def _reading(self, spark: SparkSession, stream: str, pin: str) -> StreamReading:
        state = catalog_of(spark).find(spark, Name("spark_catalog", "db", stream))
        if state is None:
            raise StreamqlError("STREAM_NOT_FOUND", f"there is no stream {stream}")
        transaction = session_transactions.current(spark)
        reading = read_stream(spark, state, None if transaction is None else transaction.interval(state))
        if transaction is not None:
            transaction.pin(state.stream.uuid, reading.interval, pin)
        return reading

    def ddl(self, process: Process, text: str) -> None:
        """One of our own statements, by the real engine."""
        outcome = self._outcome(text)
        try:
            engine.run(session_of(process), text)
        except Exception as e:
            outcome.error = e
        outcome.ended = True
        self._tell(outcome)

    def write(self, name: str, row: str = "change") -> None:
        """An append by somebody who has nothing to do with streams."""
        self.scheduler.before(Step(f"appends to {name}"))
        self.append(name, row)
        self.scheduler.note(f"appends to {name}")

    def drop(self, name: str) -> None:
        """A person's DROP TABLE."""
        self.scheduler.call(self.dropping(name))

    def remake(self, name: str) -> None:
        """A person's CREATE TABLE, at the path where one of the name was before."""
        self.scheduler.before(Step(f"creates table {name}"))
        self.table(name)
        self.scheduler.note(f"creates table {name}")

    def replace(self, name: str) -> None:
        """A person's CREATE OR REPLACE TABLE."""
        self.scheduler.before(Step(f"replaces table {name}"))
        commit = Commit("CREATE OR REPLACE TABLE", clears=True, metadata=metadata(self.fresh("table")))
        self.storage.commit(self.storage.newest(self.storage.names[name]), commit)
        self.scheduler.note(f"replaces table {name}")

    def begin(self, text: str) -> None:
        """A statement begins, of whose outcome nothing is asked."""
        self._outcome(text).is_one = False

    def _outcome(self, text: str) -> Outcome:
        outcome = Outcome(self.scheduler.current.name, text)
        self.outcomes.append(outcome)
        self.scheduler.note(f"begins {text}")
        return outcome

    def _tell(self, outcome: Outcome) -> None:
        self.met[outcome.code or "returned"] += 1
        self.scheduler.note(f"ends {outcome.text}", outcome.error or f"returned {outcome.rows or ''}")

    def consumption_begins(self) -> str:
        """The id of a consumption, noted down for the statement that is about to run it."""
        made = self.fresh("consumption")
        running = [o for o in self.outcomes if o.actor == self.scheduler.current.name and not o.ended]
        running[-1].ids.append(made)
        return made

    def logs(self) -> list[Log]:
        """All logs there are and were."""
        return [*self.storage.logs.values(), *self.storage.gone]


def session_of(process: Process) -> SparkSession:
    return cast(SparkSession, process.mine["session"])
