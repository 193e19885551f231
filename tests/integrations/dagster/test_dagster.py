"""The flights example, run by Dagster itself: the sensor asks once for each interval, and again after a failure. `make integrations` runs
these tests."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

if importlib.util.find_spec("dagster") is None:
    pytest.skip("Dagster is not installed", allow_module_level=True)

from tests.integrations.support import COMMAND, FLIGHTS_A_MONTH, MISSING, ROOT, Server

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("lake")) as started:
        started.set_up()
        yield started


@pytest.fixture
def example(server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("STREAMQL_LAKE", str(server.lake))
    return importlib.import_module("examples.dagster.flights")


def test_the_sensor_and_the_job(example: Any, server: Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    import dagster as dg

    from streamql.integrations.dagster import StreamqlResource, streamql_sensor

    lake = StreamqlResource(connect=server.streamql.connect, command=list(COMMAND))
    definitions = dg.Definitions(jobs=[example.flights], resources={"streamql": lake})
    job = definitions.resolve_job_def("flights")
    sensor = streamql_sensor(name="changes", streams=example.STREAMS, streamql=lake, job=job)

    @dg.job(resource_defs={"streamql": lake})
    def broken() -> None:
        @dg.op(required_resource_keys={"streamql"})
        def replica(context) -> None:  # type: ignore[no-untyped-def]
            wrong = "INSERT INTO flight_audit (flight_id) SELECT raise_error('a bad row') FROM flights_to_replica"
            context.resources.streamql.run_script(context, sql=wrong)

        replica()

    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("home"))) as instance:

        def asked() -> dg.RunRequest | dg.SkipReason:
            data = sensor.evaluate_tick(dg.build_sensor_context(instance=instance))
            (request,) = data.run_requests or [dg.SkipReason(data.skip_message)]
            return request

        def ran(job: Any, request: Any) -> Any:
            return job.execute_in_process(instance=instance, tags=dict(request.tags), raise_on_error=False)

        first = asked()
        assert isinstance(first, dg.RunRequest)
        assert first.run_key == "default.flights_to_replica:2..3,default.flights_to_delays:2..3#1"
        offset = server.offset()
        failed = ran(broken, first)
        assert not failed.success
        assert "a bad row" in str(failed.all_events)
        assert server.offset() == offset

        again = asked()
        assert isinstance(again, dg.RunRequest)
        assert again.run_key == first.run_key.removesuffix("#1") + "#2"
        result = ran(job, again)
        assert result.success
        assert server.rows(MISSING) == "0\n0"
        nothing = asked()
        assert isinstance(nothing, dg.SkipReason)
        assert str(nothing.skip_message).startswith("no data")

        event = instance.get_latest_materialization_event(dg.AssetKey(["default", "flights_replica"]))
        assert event is not None
        assert event.asset_materialization is not None
        metadata = {key: value.value for key, value in event.asset_materialization.metadata.items()}
        assert (metadata["rows_written"], metadata["changes/INSERT"]) == (FLIGHTS_A_MONTH, FLIGHTS_A_MONTH)
        assert [(s["from_version"], s["through_version"]) for s in metadata["streams"]] == [(2, 3)]
        seen = [e.asset_observation_data for e in result.all_events if e.event_type_value == "ASSET_OBSERVATION"]
        assert {s.asset_observation.asset_key.path[-1] for s in seen} == {"flights_to_replica", "flights_to_delays"}

        server.close()
        down = asked()
        assert isinstance(down, dg.SkipReason)
        assert "no server answers" in str(down.skip_message)
        server.start()
        server.load(2)
        second = asked()
        assert isinstance(second, dg.RunRequest)
        assert "flights_to_replica:3..4" in second.run_key
        assert ran(job, second).success
        assert server.rows(MISSING) == "0\n0"


def test_the_definitions_of_the_example(example: Any) -> None:
    import dagster as dg

    dg.Definitions.validate_loadable(example.definitions)


def test_without_dagster_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['dagster'] = None; import streamql.integrations.dagster"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "pip install 'streamql[dagster]'" in done.stderr
