"""The Scala classes that the protocol's Python talks to, over logs in memory: TableReader, EventLog, Txns, Names, and a Spark session.

Each does what the class of that name in streamql/extension/scala does, step by step where a step can be seen from outside. Methods are
named as Scala's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamql.catalog.tables import EVENT_COLUMNS, JSON_TYPES, OPTIONAL_COLUMNS
from streamql.delta.command import ClaimedWrite
from tests.protocol.logs import Commit, Conflict, DeltaError, Json, Snapshot, as_json
from tests.protocol.scheduler import CRASH, LOST, ORPHAN, REFUSED, Process, Step

if TYPE_CHECKING:
    from tests.protocol.world import World

BEFORE = (CRASH, ORPHAN)
AFTER = (CRASH, LOST)
AFTER_CAS = (CRASH, LOST, REFUSED)


EVENT_SCHEMA = {
    "fields": [{"name": name, "type": JSON_TYPES[sql_type]} for name, sql_type in (*EVENT_COLUMNS, *OPTIONAL_COLUMNS)]
}


def learn(world: World, path: str) -> Snapshot:
    """Returns the newest version of a table, which the process that runs knows from now on."""
    newest = world.storage.newest(path)
    world.scheduler.current.process.mine.setdefault("known", {})[path] = newest
    return newest


def known(world: World, path: str) -> Snapshot:
    """Returns what the process that runs knows of a table: its own last commit, or what it read since. Else it reads the table."""
    found: Snapshot | None = world.scheduler.current.process.mine.get("known", {}).get(path)
    return learn(world, path) if found is None else found


class Package:
    """org.apache.spark.sql.streamql. The packages below it are one here."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.bridge = self.changes = self.consume = self.session = self.statements = self
        self.TableReader = Readers(world)
        self.Txns = Txns(world)
        self.Names = Names(world)
        self.OpenTransactions = Node(set=lambda session, is_open: None)
        self.Neutral = Node(other=lambda session: None)
        self.ClaimedWrite = ClaimedWrite  # Scala's class has the members of Python's

    def EventLog(self, session: object, path: str) -> EventLog:  # noqa: N802 (Scala's name)
        """The catalog's table."""
        return EventLog(self._world, path)


class Readers:
    """The object TableReader."""

    def __init__(self, world: World) -> None:
        self._world = world

    def open(self, session: object, path: str) -> Reader:
        """One table."""
        if not path:
            raise ValueError("IllegalArgumentException: Can not create a Path from an empty string")
        return Reader(self._world, path)


class Reader:
    """The class TableReader: a table as Python sees it."""

    def __init__(self, world: World, path: str) -> None:
        self._world, self.path = world, path

    def update(self) -> Snapshot:
        """The newest snapshot. No pause where nobody writes, or where the answer is only a handle on what was seen before."""
        if self.path in self._world.still:
            return learn(self._world, self.path)
        return self._world.look(f"reads the log of {self.path}", lambda: learn(self._world, self.path))

    def known(self) -> Snapshot:
        """What this process has of the log: its own last commit, or what it read since."""
        return known(self._world, self.path)

    def describe(self, snapshot: Snapshot) -> str:
        """Version and metadata."""
        if snapshot.number < 0:
            return '{"version": -1}'
        about = {"version": snapshot.number, "timestamp": snapshot.number, "metaData": snapshot.about(), "protocol": {}}
        return json.dumps(about)

    def commits(self, snapshot: Snapshot, first: int, last: int, files: bool) -> str:
        """The commits, from the files that lie at the path now."""
        now = self._world.storage.newest(self.path)
        return json.dumps([as_json(now, version) for version in range(first, last + 1)])

    def snapshotAt(self, version: int) -> Snapshot:  # noqa: N802 (Scala's name)
        """An earlier version."""
        now = self._world.storage.newest(self.path)
        if version > now.number:
            raise DeltaError(f"VersionNotFoundException: {version}")
        return Snapshot(now.log, version)

    def hasCommit(self, snapshot: Snapshot, version: int) -> bool:  # noqa: N802 (Scala's name)
        """No log loses commits."""
        return 0 <= version <= snapshot.number

    def earliest(self) -> tuple[int, int]:
        """The log begins with its first commit."""
        return 0, 0


class EventLog:
    """The class EventLog: event commits."""

    def __init__(self, world: World, path: str) -> None:
        self._world, self._path = world, path

    def update(self) -> Snapshot:
        """The newest snapshot."""
        return self._world.look("reads the catalog", lambda: learn(self._world, self._path))

    def known(self) -> Snapshot:
        """What this process has of the log: its own last commit, or what it read since."""
        return known(self._world, self._path)

    def state(self, snapshot: Snapshot) -> str:
        """All of a snapshot."""
        if snapshot.number < 0:
            return '{"version": -1}'
        about = {
            "version": snapshot.number,
            "tableId": snapshot.id(),
            "schema": EVENT_SCHEMA,
            "configuration": snapshot.about()["configuration"],
            "domains": snapshot.domains(),
            "txns": snapshot.numbers(),
        }
        return json.dumps(about)

    def frame(self, snapshot: Snapshot) -> EventRows:
        """The rows."""
        return EventRows(self._world, snapshot)

    def commit(self, base: Snapshot, event: str) -> int | None:
        """One event commit; None: another one was first."""
        return self._world.scheduler.call(self._commit(base, json.loads(event)))

    def _commit(self, base: Snapshot, event: Json) -> Generator[Step, None, int | None]:
        about = _told(event) if self._world.scheduler.trace is not None else "event"
        yield Step(f"commits {about}", BEFORE)
        by = self._world.scheduler.current.name
        commit = Commit("WRITE", by, transactions=event["txns"], domains=event["domains"], events=tuple(event["rows"]))
        try:
            version = self._world.storage.commit(base, commit)
            learn(self._world, self._path)
        except Conflict as e:
            self._world.met["event refused"] += 1
            self._world.scheduler.note(f"commits {about}", f"refused: {e}")
            return None
        refused = self._world.scheduler.after(f"commits {about}", version, AFTER_CAS)
        return None if refused else version


def _told(event: Json) -> str:
    """An event commit in a few words."""
    rows = [f"{r['event']} {r.get('from_version', '')}-{r.get('through_version', '')}" for r in event["rows"]]
    if rows:
        return "event " + ", ".join(r.removesuffix(" -") for r in rows)
    states = [json.loads(t) for d, t in event["domains"].items() if t and d.startswith("streamql.stream.")]
    claims = [s["claim"] for s in states if s["claim"]]
    return (
        f"claim {claims[0]['consumption_id']} n={claims[0]['number']} {claims[0]['intervals']}" if claims else "event"
    )


class Txns:
    """The object Txns: numbers under application ids."""

    def __init__(self, world: World) -> None:
        self._world = world

    def number(self, snapshot: Snapshot, app_id: str) -> int | None:
        """The number that a snapshot has."""
        return snapshot.numbers().get(app_id)

    def fence(self, session: object, path: str, app_id: str, number: int, at_least: int) -> int | None:
        """The number alone, by compare-and-set."""
        return self._world.scheduler.call(self._fence(path, app_id, number, at_least))

    def _fence(self, path: str, app_id: str, number: int, at_least: int) -> Generator[Step, None, int | None]:
        world = self._world
        yield Step(f"opens a fence on {path}")
        base = world.storage.newest(path)
        if base.number < 0:
            raise DeltaError(f"DELTA_METADATA_ABSENT: {path}")
        current = base.numbers().get(app_id, -1)
        world.scheduler.note(f"opens a fence on {path}", f"the log has {current}")
        if current >= at_least:
            return current
        told = f"commits the fence {number} on {path}"
        yield Step(told, BEFORE)
        commit = Commit("Manual Update", world.scheduler.current.name, transactions={app_id: number})
        try:
            version = world.storage.commit(base, commit, frozenset({app_id}))
            learn(world, path)
        except Conflict as e:
            world.met["fence refused"] += 1
            world.scheduler.note(told, f"refused: {e}")
            return None
        world.met["fence"] += 1
        return None if world.scheduler.after(told, f"version {version}", AFTER_CAS) else number


class Names:
    """The object Names: what a name is."""

    def __init__(self, world: World) -> None:
        self._world = world

    def current(self, session: object) -> list[str]:
        """Where unqualified names are looked up."""
        return ["spark_catalog", "db"]

    def isCatalog(self, session: object, name: str) -> bool:  # noqa: N802 (Scala's name)
        """There is one."""
        return name == "spark_catalog"

    def schemaExists(self, session: object, catalog: str, schema: str) -> bool:  # noqa: N802 (Scala's name)
        """There is one."""
        return schema == "db"

    def tables(self, session: object, catalog: str, schema: str) -> list[str]:
        """All tables."""
        return sorted(self._world.storage.names)

    def identify(self, session: object, catalog: str, schema: str, name: str) -> str:
        """A table by its name."""
        path = self._world.storage.names.get(name)
        if path is None:
            return '{"type": "missing"}'
        table_id = self._world.storage.newest(path).id()
        return json.dumps({"type": "delta", "path": path, "tableId": table_id, "columns": ["id"]})


class JavaList(list[Any]):
    """java.util.ArrayList, as far as it is used."""

    def add(self, item: object) -> None:
        """Java's name for append."""
        self.append(item)


class Node:
    """A package of the JVM: its members are attributes."""

    def __init__(self, **members: object) -> None:
        self.__dict__.update(members)


class Conf:
    """A session's settings."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings

    def get(self, key: str, default: str | None = None) -> str | None:
        """A setting."""
        return self._settings.get(key, default)


class Context:
    """A SparkContext: one for each process."""

    def __init__(self, process: Process, package: Package) -> None:
        self.applicationId = process.name
        self._jvm = Node(
            org=Node(apache=Node(spark=Node(sql=Node(streamql=package)))),
            java=Node(util=Node(ArrayList=JavaList)),
        )

    def sparkUser(self) -> str:  # noqa: N802 (Spark's name)
        """Who the session runs as."""
        return "somebody"


class Session:
    """A Spark session of a process."""

    def __init__(self, world: World, process: Process, package: Package, settings: dict[str, str]) -> None:
        self._world = world
        self.conf = Conf(settings)
        self.sparkContext = Context(process, package)
        self._jsparkSession = process

    def sql(self, text: str) -> None:
        """DROP TABLE, which is all that consumption asks of SQL."""
        match = re.fullmatch(r"DROP TABLE IF EXISTS (\S+)", text)
        assert match is not None, text
        self._world.scheduler.call(self._world.dropping(match[1].split(".")[-1], by_product=True))


@dataclass(frozen=True)
class Wanted:
    """A condition: a column is one of some values."""

    column: str
    values: frozenset[object]


class Column:
    """A column of the ledger."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __eq__(self, other: object) -> Wanted:  # type: ignore[override]  # as Spark's columns do
        return Wanted(self._name, frozenset({other}))


class EventRows:
    """The rows of the catalog's table, as a DataFrame that knows `where column = value` and `where column IN (…)`."""

    def __init__(
        self, world: World, snapshot: Snapshot, conditions: Iterable[Wanted] = (), columns: tuple[str, ...] = ()
    ) -> None:
        self._world, self._snapshot, self._conditions, self._columns = world, snapshot, tuple(conditions), columns

    def __getattr__(self, name: str) -> Column:
        return Column(name)

    def where(self, condition: str | Wanted) -> EventRows:
        """Fewer rows."""
        if isinstance(condition, str):
            match = re.fullmatch(r"(\w+) (?:IN \(|= )(.*?)\)?", condition)
            assert match is not None, condition
            condition = Wanted(match[1], frozenset(re.findall(r"'([^']*)'", match[2])))
        return EventRows(self._world, self._snapshot, (*self._conditions, condition), self._columns)

    def select(self, *columns: str) -> EventRows:
        """Some columns."""
        return EventRows(self._world, self._snapshot, self._conditions, columns)

    def first(self) -> dict[str, Any] | None:
        """A row."""
        rows = self.collect()
        return rows[0] if rows else None

    def collect(self) -> list[dict[str, Any]]:
        """The rows of the snapshot."""
        found = self._world.look("reads the ledger", self._rows)
        self._world.met["ledger read"] += 1
        return found

    def _rows(self) -> list[dict[str, Any]]:
        rows = [row for commit in self._snapshot.upto() for row in commit.events]
        kept = [r for r in rows if all(r.get(c.column) in c.values for c in self._conditions)]
        return [{name: r.get(name) for name in self._columns or r} for r in kept]
