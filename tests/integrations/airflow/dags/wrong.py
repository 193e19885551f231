"""DAGs that go wrong, each run by DAG.test: `python wrong.py NAME …`."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

from airflow.sdk import DAG

from streamql.integrations.airflow import StreamqlOperator, StreamqlSensor

AUDIT = """INSERT INTO flight_audit
SELECT flight_id, carrier, flight_date, {delay}, __commit_version, __commit_timestamp FROM flights_to_audit"""
SLEEP = "length(java_method('java.lang.Thread', 'sleep', CAST(100 * length(flight_id) AS BIGINT)))"
"""Seconds for each row; a task of Spark ends at once when it is cancelled, which one that computes may not do."""

with DAG("broken", schedule=None) as broken:
    StreamqlOperator(
        task_id="audit", sql=AUDIT.format(delay="CAST(raise_error('a bad row') AS INT)"), conn_id="streamql"
    )
with DAG("killed", schedule=None) as killed:
    StreamqlOperator(
        task_id="audit", sql=AUDIT.format(delay=SLEEP), conn_id="streamql", execution_timeout=timedelta(seconds=30)
    )
with DAG("corrected", schedule=None) as corrected:
    StreamqlSensor(task_id="sees", stream="default.flights_to_audit", conn_id="streamql") >> StreamqlOperator(
        task_id="audit", sql=AUDIT.format(delay="arr_delay"), conn_id="streamql"
    )
with DAG("misnamed", schedule=None) as misnamed:
    StreamqlSensor(task_id="sees", stream="default.flights_to_nowhere", conn_id="streamql")

DAGS = {dag.dag_id: dag for dag in (broken, killed, corrected, misnamed)}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        run = DAGS[name].test()
        states = {ti.task_id: str(ti.state) for ti in run.get_task_instances()}
        values = {ti.task_id: ti.xcom_pull(task_ids=ti.task_id) for ti in run.get_task_instances()}
        print(json.dumps({"dag": name, "states": states, "values": values}), flush=True)
