"""The status of streams as plain data, which SHOW STREAMS, the commands, the report and the prompt show. Pure, and without PySpark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from streamql.times import is_near

if TYPE_CHECKING:
    from streamql.catalog.counts import Consumption
    from streamql.sources.protocol import Backlog

State = Literal["stale", "invalid", "partial", "busy", "data", "empty"]

SHOWN = ("name", "table_name", "mode", "offset_version", "offset_position", "lag_seconds", "has_data", "stale",
         "unix_millis(stale_after) AS stale_after_ms", "invalid_reason")  # fmt: skip
"""The expressions over SHOW STREAMS from which `StreamFacts.of_show` makes its result."""

BLOCKED = "CONSUMPTION_PARTIALLY_COMMITTED"
"""The code of the error with which `invalid_reason` begins if a stream is blocked."""


@dataclass(frozen=True)
class StreamStatus:
    """The present status of a stream. Times in milliseconds since 1970. None: not known, or not applicable.

    `is_blocked`: a transaction stopped half way, so that no other statement may consume the stream; `invalid_reason` says so. `backlog`:
    not known for a broken stream, and for one that still has to show initial rows. `stale_soon`: the stream may become stale within a day,
    or within a quarter of the source's retention if that is less. `latest_position`: the end of a source of several parts, as JSON.
    """

    offset_time_ms: int | None = None
    lag_versions: int | None = None
    lag_seconds: int | None = None
    has_data: bool | None = None
    stale: bool = False
    stale_after_ms: int | None = None
    invalid_reason: str | None = None
    source_name: str | None = None
    backlog: Backlog | None = None
    stale_soon: bool = False
    latest_position: str | None = None
    is_blocked: bool = False


@dataclass(frozen=True)
class Consumer:
    """The owner of a claim on a stream. `since_ms`: when the claim began, in milliseconds since 1970. `abandoned`: why others may resolve
    the claim; None: they may not."""

    who: str
    pid: int
    since_ms: int
    is_partially_committed: bool
    abandoned: str | None


@dataclass(frozen=True)
class StreamFacts:
    """A stream as an operator sees it. `last` and `failure`: its newest consumption, and the newest that failed. `offset_position`: the
    offset in a source of several parts, as JSON. `unit`: what its lag counts, in the singular."""

    uuid: str
    name: str
    source: str
    mode: str
    offset_version: int | None
    status: StreamStatus
    consumer: Consumer | None = None
    last: Consumption | None = None
    failure: Consumption | None = None
    offset_position: str | None = None
    unit: str = "version"

    @classmethod
    def of_show(cls, row: Mapping[str, Any], now_ms: int) -> StreamFacts:
        """Makes the status of a row of SHOW STREAMS, which a session of a server can read. `row`: the columns SHOWN. Backlog, consumer,
        consumptions, and the unit of the lag are not known then."""
        after_ms, reason = row["stale_after_ms"], row["invalid_reason"]
        retention_ms = None if after_ms is None else after_ms - now_ms + 1000 * (row["lag_seconds"] or 0)
        status = StreamStatus(
            lag_seconds=row["lag_seconds"],
            has_data=row["has_data"],
            stale=row["stale"],
            stale_after_ms=after_ms,
            invalid_reason=reason,
            stale_soon=retention_ms is not None and is_near(after_ms, retention_ms, now_ms),
            is_blocked=reason is not None and reason.startswith(BLOCKED),
        )
        name, source, version = row["name"], row["table_name"], row["offset_version"]
        return cls("", name, source, row["mode"], version, status, offset_position=row["offset_position"])

    @property
    def state(self) -> State:
        """Returns one word for the status. If several apply, it is the one that needs attention most."""
        if self.status.stale:
            return "stale"
        if self.status.is_blocked:
            return "partial"
        if self.status.invalid_reason is not None:
            return "invalid"
        if self.consumer is not None:
            return "busy"
        return "data" if self.status.has_data else "empty"

    @property
    def error(self) -> str | None:
        """Returns the present error: why the stream cannot be read, or why its newest consumption failed. None: there is no error."""
        if self.status.invalid_reason is not None:
            return self.status.invalid_reason
        return None if self.last is None or self.last.is_consumed else self.last.why
