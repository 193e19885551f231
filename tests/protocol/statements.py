"""Scala's ConsumeCommand over logs in memory: analysed statements, which Python claims, runs and resolves."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamql.catalog.states import read_interval
from streamql.delta.command import ClaimedWrite
from streamql.model import Interval
from tests.protocol.jvm import learn
from tests.protocol.logs import Commit, Conflict, DeltaError, Json, Snapshot, metadata
from tests.protocol.scheduler import CRASH, FAIL, LOST, ORPHAN, TORN, Step

if TYPE_CHECKING:
    from tests.protocol.world import World

RESERVED = "streamql.reserved"
STARTS = (CRASH, ORPHAN, FAIL)
COMMITS = (CRASH, ORPHAN, FAIL, TORN)


class ChangeSet:
    """A DataFrame of a stream's changes: the interval of a source. Its own analysed plan."""

    def __init__(self, path: str, interval: Interval) -> None:
        self.path, self.interval = path, interval
        self.columns: list[str] = []
        self._jdf = self

    def queryExecution(self) -> ChangeSet:  # noqa: N802 (Spark's name)
        """As Spark has it."""
        return self

    def analyzed(self) -> ChangeSet:
        """As Spark has it."""
        return self


@dataclass
class Read:
    """A reference to a stream in a statement, bound to an interval."""

    token: str
    plan: ChangeSet


@dataclass(frozen=True)
class KeptReads:
    """The class of that name."""

    kept: tuple[tuple[Read, str, ChangeSet], ...]

    def putBack(self) -> None:  # noqa: N802 (Scala's name)
        """As they were."""
        for read, token, plan in self.kept:
            read.token, read.plan = token, plan


@dataclass(frozen=True)
class Write:
    """What a statement does to its target. `operation`: AppendData, CTAS, RTAS, REPLACE. `table_id`: of a table known at analysis."""

    operation: str
    name: str
    path: str
    table_id: str = ""


class ConsumeCommand:
    """The class of that name: one or several writes, or a query. `took`: the rows it last ran with."""

    def __init__(self, world: World, text: str, reads: Sequence[Read], writes: Sequence[Write]) -> None:
        self._world, self._text, self.reads, self.writes = world, text, reads, writes
        self.took: list[str] = []

    def __repr__(self) -> str:
        return f"reads {[r.plan.interval for r in self.reads]}"

    def readDescriptions(self) -> str:  # noqa: N802 (Scala's name)
        """Each once."""
        return "\n".join(dict.fromkeys(r.token for r in self.reads))

    def tableReadDescriptions(self) -> str:  # noqa: N802
        """None: no table is read AT a stream here."""
        return ""

    def text(self) -> str:
        """The statement."""
        return self._text

    def isQuery(self) -> bool:  # noqa: N802 (Scala's name)
        """Whether nothing is written."""
        return not self.writes

    def changes(self, i: int) -> str:
        """Nobody counts rows here."""
        return "{}"

    def askedFor(self) -> str:  # noqa: N802 (Scala's name)
        """The streams a query consumes: all it reads."""
        return "\n".join(json.loads(r.token)["uuid"] for r in self.reads)

    def statementCount(self) -> int:  # noqa: N802 (Scala's name)
        """How many writes."""
        return max(1, len(self.writes))

    def pin(self) -> str:
        """Under what name its reads were pinned."""
        return self._text

    def key(self) -> str:
        """Where the statement was written."""
        return self._text

    def fingerprint(self, session: object, i: int) -> str:
        """Equal for equal statements."""
        return f"{self._text}, statement {i}"

    def rebind(self, token: str, plan: ChangeSet, new_token: str) -> None:
        """Reads with this token stand for another interval; whose columns are the same here."""
        for read in self.reads:
            if read.token == token:
                read.token, read.plan = new_token, plan

    def keepReads(self) -> KeptReads:  # noqa: N802 (Scala's name)
        """What the reads stand for now."""
        return KeptReads(tuple((read, read.token, read.plan) for read in self.reads))

    def target(self, session: object, i: int) -> str:
        """Where a statement writes: what was known at analysis of a table that is written into, looked up where one is made."""
        write = self.writes[i]
        if write.operation == "AppendData":
            return _target("AppendData", write.name, write.path, write.table_id, exists=True)
        return self._world.look(f"looks up {write.name}", lambda: self._created(write))

    def _created(self, write: Write) -> str:
        path = self._world.storage.names.get(write.name)
        if path is None:
            return _target(write.operation, write.name, "", "", exists=False)
        now = self._world.storage.newest(path)
        mark = now.about()["configuration"].get(RESERVED, "")
        mark = "" if now.rows() else mark
        return _target(write.operation, write.name, path, now.id(), exists=True, mark=mark, managed=True)

    def reserve(self, session: object, i: int, mark: str) -> None:
        """Makes the empty marked table: its files first, then its name."""
        self._world.scheduler.call(self._reserve(self.writes[i], mark))

    def _reserve(self, write: Write, mark: str) -> Generator[Step, None, None]:
        world = self._world
        yield Step(f"makes the files of the reservation {write.name}", (CRASH, ORPHAN, FAIL))
        if write.name in world.storage.names:
            raise DeltaError("TABLE_OR_VIEW_ALREADY_EXISTS")
        by = world.scheduler.current.name
        world.storage.create(
            write.path, Commit("CREATE TABLE", by, metadata=metadata(world.fresh("table"), {RESERVED: mark}))
        )
        world.scheduler.note(f"makes the files of the reservation {write.name}", f"marked {mark}")
        yield Step(f"makes the name of the reservation {write.name}", (CRASH, ORPHAN))
        world.storage.names[write.name] = write.path
        world.storage.changes += 1
        world.scheduler.after(f"makes the name of the reservation {write.name}", None, (CRASH, LOST))

    def execute(self, session: object, i: int, claimed: ClaimedWrite | None) -> Any:
        """Runs a statement with its number; its rows."""
        self.took[:] = self._rows()
        if not self.writes:
            return self._world.look(f"runs the query of {self._rows()}", self._rows)
        write = self.writes[i]
        if write.operation == "AppendData":
            return self._world.scheduler.call(self._append(write, claimed))
        return self._world.scheduler.call(self._create(write, claimed))

    def _rows(self) -> list[str]:
        """The rows of the intervals that the reads stand for, each named by its stream and version."""
        rows = []
        for read in self.reads:
            token = json.loads(read.token)
            bound = read_interval((token["after"], token["through"], token["initial"]))
            assert read.plan.interval == bound, "the token says another interval than is read"
            rows += self._world.changes(token["uuid"], read.plan.path, bound)
        return rows

    def _is_done_before(self, base: Snapshot, claimed: ClaimedWrite | None) -> bool:
        """Delta's skip of a write that was done before, by the commits since the claim (Scala: ClaimedTransaction)."""
        if claimed is None:
            return False
        app_id = claimed.app_id
        if base.number >= claimed.seen >= 0:
            found = [c.transactions[app_id] for c in base.upto()[claimed.seen + 1 :] if app_id in c.transactions]
            known = found[-1] if found else -1
        else:
            known = base.numbers().get(app_id, -1)
        if known >= claimed.number:
            self._world.met["statement skipped"] += 1
            self._world.scheduler.note("the statement is SKIPPED", f"the log has {known}, it carries {claimed.number}")
        return known >= claimed.number

    @staticmethod
    def _check(path: str, base: Snapshot, claimed: ClaimedWrite | None) -> None:
        """The target is as it was claimed (Scala: ClaimedTransactions)."""
        if claimed is None or claimed.path != path:
            return
        if base.id() != claimed.table_id:
            raise DeltaError("CONSUMPTION_FAILED: the target was replaced")
        if claimed.is_reserved and any(c.rows or c.metadata for c in base.upto()[claimed.seen + 1 :]):
            raise DeltaError("CONSUMPTION_FAILED: the table that was reserved was written meanwhile")

    def _append(self, write: Write, claimed: ClaimedWrite | None) -> Generator[Step, None, list[str]]:
        world = self._world
        yield Step(f"starts INSERT INTO {write.name}", STARTS)
        base = world.storage.newest(write.path)
        if base.number < 0:
            raise DeltaError(f"DELTA_TABLE_NOT_FOUND: {write.path}")
        world.scheduler.note(f"starts INSERT INTO {write.name}", f"at version {base.number}")
        self._check(write.path, base, claimed)
        if not self._is_done_before(base, claimed):
            yield from self._commit(write, base, claimed, Commit("WRITE", rows=tuple(self._rows())))
        return []

    def _create(self, write: Write, claimed: ClaimedWrite | None) -> Generator[Step, None, list[str]]:
        """CREATE TABLE AS; as CREATE OR REPLACE TABLE AS where its name is reserved, or was written so."""
        world = self._world
        replaces = (claimed is not None and claimed.is_reserved) or write.operation in ("RTAS", "REPLACE")
        about = metadata(world.fresh("table"))
        yield Step(f"starts {'CREATE OR REPLACE' if replaces else 'CREATE'} TABLE {write.name} AS", STARTS)
        there = world.storage.names.get(write.name)
        if there is None and write.operation == "REPLACE":
            raise DeltaError("TABLE_OR_VIEW_NOT_FOUND")
        if there is None:
            self._make(write, _numbers(claimed), about)
            return []
        if not replaces:
            raise DeltaError("TABLE_OR_VIEW_ALREADY_EXISTS")
        base = world.storage.newest(there)
        world.scheduler.note("starts it", f"at version {base.number}")
        self._check(there, base, claimed)
        if not self._is_done_before(base, claimed):
            commit = Commit("CREATE OR REPLACE TABLE AS SELECT", rows=tuple(self._rows()), clears=True, metadata=about)
            yield from self._commit(write, base, claimed, commit)
        return []

    def _make(self, write: Write, numbers: dict[str, int], about: Json) -> None:
        """A table that is not there yet, with its rows."""
        world = self._world
        by = world.scheduler.current.name
        commit = Commit("CTAS", by, tuple(self._rows()), transactions=numbers, metadata=about)
        world.storage.create(write.path, commit)
        learn(world, write.path)
        world.storage.names[write.name] = write.path
        world.scheduler.note(f"creates {write.name} with {list(commit.rows)}")

    def _commit(
        self, write: Write, base: Snapshot, claimed: ClaimedWrite | None, commit: Commit
    ) -> Generator[Step, None, None]:
        world = self._world
        carried = "no number" if claimed is None else claimed.number
        told = f"commits {commit.operation} of {list(commit.rows)} into {write.name} with {carried}"
        yield Step(told, COMMITS)
        numbers = _numbers(claimed)
        commit = Commit(
            commit.operation, world.scheduler.current.name, commit.rows, commit.clears, numbers, commit.metadata
        )
        try:
            version = world.storage.commit(base, commit, frozenset(numbers))
            learn(world, write.path)
        except (Conflict, DeltaError) as e:
            world.met["statement refused"] += 1
            world.scheduler.note(told, f"refused: {e}")
            raise
        if write.operation == "CTAS" and base.rows():
            known = Snapshot(base.log, min(-1 if claimed is None else claimed.seen, base.number)).rows()
            when = "were there when it claimed" if known else "came after its claim"
            world.accuse(f"CREATE TABLE {write.name} replaced a table whose rows {when}: {sorted(base.rows())}")
        world.scheduler.after(told, f"version {version}", (CRASH, LOST))


def _numbers(claimed: ClaimedWrite | None) -> dict[str, int]:
    return {} if claimed is None else {claimed.app_id: claimed.number}


def _target(
    operation: str, name: str, path: str, table_id: str, *, exists: bool, mark: str = "", managed: bool = False
) -> str:
    return json.dumps(
        {
            "format": "delta",
            "operation": operation,
            "name": f"spark_catalog.db.{name}",
            "path": path,
            "tableId": table_id,
            "exists": exists,
            "mark": mark,
            "managed": managed,
        }
    )
