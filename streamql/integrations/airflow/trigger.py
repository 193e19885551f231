"""The trigger of the sensor: looks at streams from time to time, in a triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from streamql.errors import StreamqlError
from streamql.integrations.airflow.connection import reached_async
from streamql.integrations.client import is_passing

LOOKS_AT_ONCE = 2
"""How many looks a triggerer makes at once. A look at a data directory starts Spark, which takes memory and seconds of a processor."""

_looks = asyncio.Semaphore(LOOKS_AT_ONCE)


class StreamqlTrigger(BaseTrigger):
    """Fires once one of the streams has data. A server that does not answer is tried again, `max_failures` times in a row."""

    def __init__(
        self,
        streams: Sequence[str],
        conn_id: str | None = None,
        place: Mapping[str, Any] | None = None,
        poke_interval: float = 60.0,
        max_failures: int = 10,
    ) -> None:
        super().__init__()
        self.streams = list(streams)
        self.conn_id = conn_id
        self.place = dict(place or {})
        self.poke_interval = poke_interval
        self.max_failures = max_failures

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Returns the path of the class and its arguments, which Airflow stores. A connection is stored by its id only."""
        return (
            "streamql.integrations.airflow.trigger.StreamqlTrigger",
            {
                "streams": self.streams,
                "conn_id": self.conn_id,
                "place": self.place,
                "poke_interval": self.poke_interval,
                "max_failures": self.max_failures,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event: {"streams": those that have data}, or {"error": why no look will succeed}."""
        failures = 0
        while True:
            try:
                found = await self._look()
            except StreamqlError as e:
                failures += 1
                if not is_passing(e) or failures >= self.max_failures:
                    yield TriggerEvent({"error": str(e)})
                    return
                self.log.warning(
                    "look %d of at most %d failed, the next one is in %.0f s: %s",
                    failures,
                    self.max_failures,
                    self.poke_interval,
                    e,
                )
            else:
                failures = 0
                if found:
                    yield TriggerEvent({"streams": found})
                    return
            await asyncio.sleep(self.poke_interval)

    async def _look(self) -> list[str]:
        """Returns the streams that have data."""
        async with _looks:
            streamql = await reached_async(self.conn_id, self.place)
            answers = await streamql.has_data_async(self.streams)
        return [name for name, has_data in answers.items() if has_data]
