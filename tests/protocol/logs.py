"""Delta tables in memory: logs of commits by path, and which commits conflict. As Delta 4.4 does it, as far as the protocol can tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]})


class DeltaError(Exception):
    """What Delta raises and nobody of ours expects by its class."""


class Conflict(Exception):
    """DeltaConcurrentModificationException and its kin: nothing was written."""


@dataclass(frozen=True)
class Commit:
    """One commit. `rows`: what it adds, each named by stream and change; `clears`: it removes all rows that were there before.

    `metadata`: id and configuration where it sets them. `events`: rows of the catalog's table. `by`: the statement that made it.
    """

    operation: str
    by: str = ""
    rows: tuple[str, ...] = ()
    clears: bool = False
    transactions: Mapping[str, int] = field(default_factory=dict)
    metadata: Json | None = None
    domains: Mapping[str, str | None] = field(default_factory=dict)
    events: tuple[Json, ...] = ()


def conflict_of(commit: Commit, read: frozenset[str], won: Commit) -> str | None:
    """Why a commit that read the numbers of the app ids `read` may not follow one that came since its snapshot; None: it may."""
    if read & won.transactions.keys():
        return "ConcurrentTransactionException"
    if won.metadata is not None:
        return "MetadataChangedException"
    if commit.domains.keys() & won.domains.keys():
        return "DELTA_DOMAIN_METADATA conflict"
    if commit.clears and (won.rows or won.clears):
        return "ConcurrentAppendException"
    return None


class Log:
    """The commits at one path, from version 0."""

    def __init__(self, path: str, commits: list[Commit]) -> None:
        self.path = path
        self.commits = commits

    def newest(self) -> Snapshot:
        """The last version there is."""
        return Snapshot(self, len(self.commits) - 1)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A version of a log; what Python holds as a handle, so methods are Scala's. Version -1: there is no table."""

    log: Log
    number: int

    def __repr__(self) -> str:
        return f"version {self.number}"

    def version(self) -> int:
        """As Scala names it."""
        return self.number

    def metadata(self) -> Snapshot:
        """For `metadata().id()`."""
        return self

    def id(self) -> str:
        """The table's id."""
        return str(self.about()["id"])

    def upto(self) -> list[Commit]:
        """The commits that make it."""
        return self.log.commits[: self.number + 1]

    def about(self) -> Json:
        """Its metadata: the last that a commit set."""
        return next(c.metadata for c in reversed(self.upto()) if c.metadata is not None)

    def numbers(self) -> dict[str, int]:
        """The last number of each app id."""
        return {app: number for commit in self.upto() for app, number in commit.transactions.items()}

    def domains(self) -> dict[str, str]:
        """The domains that are not removed."""
        last = {name: text for commit in self.upto() for name, text in commit.domains.items()}
        return {name: text for name, text in last.items() if text is not None}

    def rows(self) -> Counter[str]:
        """The rows in the table."""
        rows: Counter[str] = Counter()
        for commit in self.upto():
            if commit.clears:
                rows.clear()
            rows.update(commit.rows)
        return rows


def metadata(table_id: str, configuration: Mapping[str, str] | None = None) -> Json:
    """A metadata action."""
    return {"id": table_id, "configuration": dict(configuration or {}), "schemaString": SCHEMA, "partitionColumns": []}


def as_json(snapshot: Snapshot, version: int) -> Json:
    """A commit as TableReader.commits shows it; without actions where its file is gone."""
    commits = snapshot.log.commits
    if version >= len(commits):
        return {"version": version, "time": None}
    commit = commits[version]
    actions: list[Json] = [{"commitInfo": {"operation": commit.operation, "inCommitTimestamp": version}}]
    if commit.metadata is not None:
        actions.append({"metaData": commit.metadata})
    actions += [{"txn": {"appId": app, "version": number}} for app, number in commit.transactions.items()]
    actions += [
        {"domainMetadata": {"domain": name, "configuration": text or "", "removed": text is None}}
        for name, text in commit.domains.items()
    ]
    return {"version": version, "time": version, "actions": actions}


class Storage:
    """All tables: logs by path, and the metastore's names. `gone` keeps the logs of dropped tables for the checks."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {}
        self.names: dict[str, str] = {}
        self.gone: list[Log] = []
        self.changes = 0

    def copy(self) -> Storage:
        """Another one with the same tables."""
        other = Storage()
        other.logs = {path: Log(path, list(log.commits)) for path, log in self.logs.items()}
        other.names = dict(self.names)
        return other

    def newest(self, path: str) -> Snapshot:
        """The table at a path; version -1 where there is none."""
        log = self.logs.get(path)
        return Snapshot(Log(path, []), -1) if log is None else log.newest()

    def create(self, path: str, commit: Commit) -> None:
        """Version 0 of a new table. Raises DeltaError where a log is there."""
        if path in self.logs:
            raise DeltaError(f"DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY: {path}")
        self.logs[path] = Log(path, [commit])
        self.changes += 1

    def commit(self, base: Snapshot, commit: Commit, read: frozenset[str] = frozenset()) -> int:
        """A commit on top of a snapshot, into the log that stands at its path now. Answers its version.

        Raises Conflict, and DeltaError where the log is gone or another, shorter one stands there.
        """
        log = self.logs.get(base.log.path)
        if log is None:
            raise DeltaError(f"FileNotFoundException: {base.log.path}/_delta_log")
        if len(log.commits) <= base.number:
            raise DeltaError(f"DELTA_VERSIONS_NOT_CONTIGUOUS: {base.log.path}")
        for won in log.commits[base.number + 1 :]:
            reason = conflict_of(commit, read, won)
            if reason is not None:
                raise Conflict(reason)
        log.commits.append(commit)
        self.changes += 1
        return len(log.commits) - 1

    def drop(self, name: str) -> Snapshot | None:
        """Drops a managed table, its files too; what it was."""
        path = self.names.pop(name, None)
        if path is None:
            return None
        log = self.logs.pop(path)
        self.gone.append(log)
        self.changes += 1
        return log.newest()
