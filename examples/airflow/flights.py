"""The consumers of the flights example as DAGs: a sensor, two scripts that consume streams, and a report that follows a table."""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import DAG

from streamql.integrations.airflow import StreamqlOperator, StreamqlSensor, table_asset

CONNECTION = "streamql"
"""A connection of Airflow, with the data directory in its extra."""
SCRIPTS = "../flights"

# @continuous: a run begins when the last one has ended, and its sensor waits for changes. Without a start date Airflow makes one run.
with DAG(
    "flights",
    schedule="@continuous",
    start_date=datetime(2013, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3},
):
    changes = StreamqlSensor(
        task_id="changes",
        streams=["default.flights_to_replica", "default.flights_to_delays"],
        conn_id=CONNECTION,
        poke_interval=20,
        timeout=24 * 60 * 60,
        soft_fail=True,  # a day without changes is not a failure
    )
    replica = StreamqlOperator(task_id="replica", script=f"{SCRIPTS}/04_replica.sql", conn_id=CONNECTION)
    delays = StreamqlOperator(task_id="delays", script=f"{SCRIPTS}/05_daily_delays.sql", conn_id=CONNECTION)
    changes >> replica >> delays

with DAG("flights_report", schedule=[table_asset("default.daily_delays")], catchup=False):
    StreamqlOperator(task_id="worst_days", script=f"{SCRIPTS}/18_worst_days.sql", conn_id=CONNECTION)
