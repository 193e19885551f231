"""The flights example, run by Airflow itself: each change once, after failures too. `make integrations` runs these tests."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

if importlib.util.find_spec("airflow") is None:
    pytest.skip("Airflow is not installed", allow_module_level=True)

from tests.integrations.airflow.support import WRONG, Airflow, became_of, variables
from tests.integrations.support import (
    DELAYS_STREAM,
    FLIGHTS_A_MONTH,
    MISSING,
    REPLICA_STREAM,
    ROOT,
    Server,
)

pytestmark = pytest.mark.spark

AUDIT_STREAM = "default.flights_to_audit"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("lake")) as started:
        started.set_up()
        yield started


@pytest.fixture(scope="module")
def airflow(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    home = tmp_path_factory.mktemp("home")
    with Airflow(home, variables(home, server)) as started:
        yield started


def test_each_run_takes_what_has_changed(airflow: Airflow, server: Server) -> None:
    first = airflow.wait_for_run("flights", 1)
    assert server.rows(MISSING) == "0\n0"
    said = airflow.said("flights", first, "replica")
    assert f"MERGE: {FLIGHTS_A_MONTH} rows into flights_replica" in said
    airflow.wait_for_run("flights_report", 1)

    # The next run waits in the triggerer, and starts when there are changes.
    waiting = airflow.wait_for_deferral()
    server.load(2)
    assert airflow.wait_for_run("flights", 2) == waiting
    assert server.rows(MISSING) == "0\n0"
    airflow.wait_for_run("flights_report", 2)
    assert waiting != first

    events = airflow.events()
    copied = events["streamql://lake/default/flights_replica"]
    assert [event["run"] for event in copied] == [f"flights/{run}/replica" for run in (first, waiting)]
    intervals = [(s["from_version"], s["through_version"], s["changes"]) for e in copied for s in e["streams"]]
    assert intervals == [(2, 3, {"INSERT": FLIGHTS_A_MONTH}), (3, 4, {"INSERT": FLIGHTS_A_MONTH})]
    assert len(events["streamql://lake/default/daily_delays"]) == 2


def test_a_server_that_is_unplugged_while_a_run_waits(airflow: Airflow, server: Server) -> None:
    waiting = airflow.wait_for_deferral()
    server.close()
    while "no server answers" not in airflow.said("flights", waiting, "changes"):
        time.sleep(1)
    server.start()
    server.load(3)
    assert airflow.wait_for_run("flights", 3) == waiting
    assert server.rows(MISSING) == "0\n0"
    taken = f"SELECT count(*), sum(changes['INSERT']) FROM streamql.consumptions WHERE stream IN ('{REPLICA_STREAM}', '{DELAYS_STREAM}')"
    assert server.rows(taken) == f"6,{6 * FLIGHTS_A_MONTH}"


def test_runs_that_fail_move_nothing(server: Server, tmp_path: Path) -> None:
    environment = variables(tmp_path, server, WRONG.parent)
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], env=environment, capture_output=True, check=True)
    before = server.offset(AUDIT_STREAM)
    went = became_of(environment, ["broken", "killed", "misnamed"])
    assert {name: set(of["states"].values()) for name, of in went.items()} == {
        "broken": {"failed"},
        "killed": {"failed"},
        "misnamed": {"failed"},
    }
    assert "USER_RAISED_EXCEPTION" in went["broken"]["log"]
    assert "AirflowTaskTimeout" in went["killed"]["log"]
    assert "there is no stream default.flights_to_nowhere" in went["misnamed"]["log"]
    assert (server.offset(AUDIT_STREAM), server.rows("SELECT count(*) FROM flight_audit")) == (before, "0")

    corrected = became_of(environment, ["corrected"])["corrected"]
    assert corrected["states"] == {"sees": "success", "audit": "success"}
    (taken,) = corrected["values"]["audit"]
    assert (str(taken["from_version"]), taken["outcome"]) == (before, "CONSUMED")
    assert server.rows("SELECT count(*) FROM flight_audit") == str(taken["changes"]["INSERT"])


def test_without_airflow_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['airflow'] = None; import streamql.integrations.airflow"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "pip install 'streamql[airflow]'" in done.stderr
