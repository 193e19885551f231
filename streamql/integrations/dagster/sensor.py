"""The sensor: asks for a run when a stream has data, once for each interval."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from dagster import DagsterRunStatus, DefaultSensorStatus, RunRequest, RunsFilter, SensorDefinition, SkipReason

from streamql.errors import StreamqlError
from streamql.integrations.client import is_passing
from streamql.integrations.dagster.resource import StreamqlResource
from streamql.integrations.results import Backlog

INTERVAL_TAG = "streamql/interval"
SENSOR_TAG = "streamql/sensor"
STREAMS_TAG = "streamql/streams"
KEY_LETTERS_MAX = 200
NOT_ENDED = (
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)


def streamql_sensor(
    *,
    name: str,
    streams: Sequence[str],
    streamql: StreamqlResource,
    target: Any = None,
    job: Any = None,
    minimum_interval_seconds: int = 60,
    attempts_max: int = 3,
    default_status: DefaultSensorStatus = DefaultSensorStatus.STOPPED,
) -> SensorDefinition:
    """Returns a sensor that asks for a run of `job`, or of the assets `target`, if a stream has data.

    The key of the run is made of the offset and the newest version of each stream that has data. So one interval is asked for once. If its
    run fails, the interval is asked for again, in at most `attempts_max` runs. The sensor asks for no run while one of its runs has not
    ended.
    """

    def look(context: Any) -> RunRequest | SkipReason:
        if context.instance.get_runs_count(_runs(name, statuses=list(NOT_ENDED))):
            return SkipReason("a run that this sensor has asked for has not ended")
        try:
            backlogs = [b for b in streamql.streamql.backlogs(streams) if b.has_data]
        except StreamqlError as e:
            if not is_passing(e):
                raise
            return SkipReason(f"the streams cannot be read now: {e}")
        if not backlogs:
            return SkipReason(f"no data: {', '.join(streams)}")
        interval = _interval(backlogs)
        runs = context.instance.get_runs(_runs(name, tags={INTERVAL_TAG: interval}))
        if any(run.status == DagsterRunStatus.SUCCESS for run in runs):
            return SkipReason(f"a run for {interval} has succeeded, and has not consumed it")
        if len(runs) >= attempts_max:
            return SkipReason(f"{len(runs)} runs for {interval} have failed")
        tags = {SENSOR_TAG: name, INTERVAL_TAG: interval, STREAMS_TAG: ",".join(b.stream for b in backlogs)}
        return RunRequest(run_key=f"{interval}#{len(runs) + 1}", tags=tags)

    what = {"target": target} if job is None else {"job": job}
    return SensorDefinition(
        name=name,
        evaluation_fn=look,
        minimum_interval_seconds=minimum_interval_seconds,
        description=f"asks for a run when one of these streams has data: {', '.join(streams)}",
        default_status=default_status,
        **what,
    )


def _runs(
    name: str, *, tags: dict[str, str] | None = None, statuses: list[DagsterRunStatus] | None = None
) -> RunsFilter:
    return RunsFilter(tags={SENSOR_TAG: name, **(tags or {})}, statuses=statuses)


def _interval(backlogs: Sequence[Backlog]) -> str:
    """Returns a text for the intervals of several streams, short enough for a tag."""
    text = ",".join(backlog.interval for backlog in backlogs)
    return text if len(text) <= KEY_LETTERS_MAX else hashlib.sha256(text.encode()).hexdigest()
