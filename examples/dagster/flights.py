"""The consumers of the flights example as a job of Dagster: a sensor asks for it, and each table that it writes is an asset."""

# Dagster reads the annotations of ops, so they are not put off by `from __future__ import annotations`.

from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from streamql.integrations.dagster import StreamqlResource, materializations, observations, streamql_sensor

SCRIPTS = Path(__file__).resolve().parent.parent / "flights"
STREAMS = ("default.flights_to_replica", "default.flights_to_delays")


@dg.op
def replica(context: dg.OpExecutionContext, streamql: StreamqlResource) -> Iterator[object]:
    run = streamql.run_script(context, script=str(SCRIPTS / "04_replica.sql"))
    yield from observations(run)
    yield from materializations(run)
    yield dg.Output(len(run.consumptions))


@dg.op(ins={"after": dg.In(dg.Nothing)})
def delays(context: dg.OpExecutionContext, streamql: StreamqlResource) -> Iterator[object]:
    run = streamql.run_script(context, script=str(SCRIPTS / "05_daily_delays.sql"))
    yield from observations(run)
    yield from materializations(run)
    yield dg.Output(len(run.consumptions))


@dg.job
def flights() -> None:
    delays(after=replica())


@dg.op
def worst_days(context: dg.OpExecutionContext, streamql: StreamqlResource) -> None:
    streamql.run_script(context, script=str(SCRIPTS / "18_worst_days.sql"))


@dg.job
def flights_report() -> None:
    worst_days()


@dg.asset_sensor(asset_key=dg.AssetKey(["default", "daily_delays"]), job=flights_report)
def daily_delays_written(context: dg.SensorEvaluationContext, event: dg.EventLogEntry) -> dg.RunRequest:  # noqa: ARG001
    return dg.RunRequest(run_key=context.cursor)


lake = StreamqlResource(data=dg.EnvVar("STREAMQL_LAKE"))

definitions = dg.Definitions(
    jobs=[flights, flights_report],
    sensors=[
        streamql_sensor(name="flights_changes", streams=STREAMS, streamql=lake, job=flights),
        daily_delays_written,
    ],
    resources={"streamql": lake},
)
