"""Delta's commits as plain data, read from the transaction log.

Source of the format: Delta's PROTOCOL.md, "Actions".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamql.garbage import uncollected

Json = Mapping[str, Any]

VectorKey = tuple[str, str, int | None]


@dataclass(frozen=True)
class FileState:
    """A data file as one action shows it, with or without a deletion vector. Two states are equal if their path and deletion vector are.

    `action`: the JSON object of the action.
    """

    path: str
    vector: VectorKey | None
    action: Json = field(compare=False, hash=False, repr=False)

    @property
    def base_row_id(self) -> int | None:
        """Returns the row id of the file's first row. A row that has an id of its own in the file is an exception. None: the action has
        none."""
        value = self.action.get("baseRowId")
        return None if value is None else int(value)

    @property
    def default_row_commit_version(self) -> int | None:
        """Returns the row commit version of the file's rows. A row that has one of its own in the file is an exception. None: the action
        has none."""
        value = self.action.get("defaultRowCommitVersion")
        return None if value is None else int(value)

    @property
    def deleted_rows(self) -> int:
        """Returns the number of rows that the deletion vector marks as deleted."""
        return int((self.action.get("deletionVector") or {}).get("cardinality", 0))

    @property
    def rows(self) -> int | None:
        """Returns the number of rows in this state, without deleted ones. None: the action has no statistics."""
        records = self.action.get("numRecords")
        return None if records is None else int(records) - self.deleted_rows

    @property
    def has_metadata(self) -> bool:
        """Returns whether the action has what reading the file needs: size and partition. A remove action may lack them."""
        return "size" in self.action and "partitionValues" in self.action

    def as_add(self) -> str:
        """Returns the state as an add action in JSON, with which the JVM reads the file."""
        keep = ("path", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")
        add: dict[str, Any] = {k: self.action[k] for k in keep if self.action.get(k) is not None}
        add["partitionValues"] = self.action.get("partitionValues") or {}
        add["modificationTime"] = self.action.get("modificationTime") or self.action.get("deletionTimestamp") or 0
        add["dataChange"] = True
        return json.dumps({"add": add}, separators=(",", ":"))


@dataclass(frozen=True)
class FileChange:
    """What one commit did to one file. `before`, `after`: its states; None: the file is not in the table."""

    before: FileState | None
    after: FileState | None
    data_change: bool

    @property
    def path(self) -> str:
        """Returns the file's path, as the log names it."""
        state = self.after if self.after is not None else self.before
        assert state is not None
        return state.path


@dataclass(frozen=True)
class Commit:
    """One commit of the log. `time_ms`: its in-commit timestamp if it has one (`has_own_time`), else the time of its file. `metadata`,
    `protocol`: None if it does not change them. `transactions`: number by application id. `domains`: domain metadata; a value of None
    removes the domain. `user_metadata`: the text that its writer put into it."""

    version: int
    time_ms: int
    operation: str | None
    row_tracking_preserved: bool | None
    changes: tuple[FileChange, ...]
    metadata: Json | None
    protocol: Json | None
    transactions: Mapping[str, int]
    domains: Mapping[str, str | None]
    metrics: Mapping[str, str]
    has_own_time: bool = False
    user_metadata: str | None = None


class CommitMissing(Exception):
    """Raised if the file of a commit is no longer in the log."""

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(f"commit {version} is not in the log")


def file_state(action: Json) -> FileState:
    """Returns the state that an add action makes, or the one that a remove action removes."""
    dv = action.get("deletionVector")
    vector = (str(dv["storageType"]), str(dv["pathOrInlineDv"]), dv.get("offset")) if dv else None
    return FileState(str(action["path"]), vector, action)


def parse_commits(text: str) -> list[Commit]:
    """Parses the answer of `TableReader.commits`. Raises `CommitMissing`."""
    with uncollected():
        return [_commit(entry) for entry in json.loads(text)]


def _commit(entry: Json) -> Commit:
    version = int(entry["version"])
    if "actions" not in entry:
        raise CommitMissing(version)
    added: dict[str, Json] = {}
    removed: dict[str, Json] = {}
    info: Json = {}
    metadata = protocol = None
    transactions: dict[str, int] = {}
    domains: dict[str, str | None] = {}
    for action in entry["actions"]:
        ((action_type, body),) = action.items()
        if action_type == "add":
            added[body["path"]] = body
        elif action_type == "remove":
            removed[body["path"]] = body
        elif action_type == "commitInfo":
            info = body
        elif action_type == "metaData":
            metadata = body
        elif action_type == "protocol":
            protocol = body
        elif action_type == "txn":
            transactions[body["appId"]] = int(body["version"])
        elif action_type == "domainMetadata":
            domains[body["domain"]] = None if body.get("removed") else body["configuration"]
    tag = (info.get("tags") or {}).get("delta.rowTracking.preserved")
    own_time = info.get("inCommitTimestamp")
    file_time = entry["time"] if entry["time"] is not None else info.get("timestamp", 0)
    return Commit(
        version=version,
        time_ms=int(file_time if own_time is None else own_time),
        operation=info.get("operation"),
        row_tracking_preserved=None if tag is None else tag == "true",
        changes=tuple(_file_changes(added, removed)),
        metadata=metadata,
        protocol=protocol,
        transactions=transactions,
        domains=domains,
        metrics=info.get("operationMetrics") or {},
        has_own_time=own_time is not None,
        user_metadata=info.get("userMetadata"),
    )


def _file_changes(added: Mapping[str, Json], removed: Mapping[str, Json]) -> Iterable[FileChange]:
    for path, action in removed.items():
        after = added.get(path)
        data_change = (after if after is not None else action).get("dataChange", True)
        yield FileChange(file_state(action), None if after is None else file_state(after), bool(data_change))
    for path, action in added.items():
        if path not in removed:
            yield FileChange(None, file_state(action), bool(action.get("dataChange", True)))
