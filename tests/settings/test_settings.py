"""What a session has set changes none of what streamql itself says: types, rows, the catalog, its views."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from streamql.catalog import tables
from streamql.delta.txns import EventLog
from tests.consume.support import TRACKED, data_of, fresh_schema, run
from tests.sample import IS_LONG
from tests.settings.hostile import BUNDLES, FOR_TRANSCRIPTS, FOR_TRANSCRIPTS_SET, SINGLE
from tests.settings.scenario import VIEWS, Seen, look, make_source, make_targets, play, use_catalog
from tests.transcripts.__main__ import transcripts
from tests.transcripts.running import run as run_transcript
from tests.transcripts.script import read

SETTINGS: dict[str, Mapping[str, str]] = {
    **BUNDLES,
    **({key: {key: value} for key, value in SINGLE.items()} if IS_LONG else {}),
}

Play = Callable[[str, Mapping[str, str]], tuple[Seen, Seen]]


@pytest.fixture(scope="module")
def played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Plays the scenario under settings in a fresh session and catalog: what that session saw, and what a plain one sees then."""
    spark.sql("CREATE SCHEMA settings")
    make_source(spark, "settings.t")
    history = spark.sql("DESCRIBE HISTORY settings.t").select(F.unix_millis("timestamp").alias("ms"))
    newest = sorted(row["ms"] for row in history.collect())[-2:]
    since = dt.datetime.fromtimestamp(sum(newest) / 2000, dt.timezone.utc).isoformat(sep=" ", timespec="milliseconds")

    def play_under(name: str, settings: Mapping[str, str]) -> tuple[Seen, Seen]:
        schema = f"settings_{name}"
        location = tmp_path_factory.mktemp(schema)
        make_targets(spark, schema)
        sessions = spark.newSession(), spark.newSession()
        for session in sessions:
            use_catalog(session, schema, location)
        for key, value in settings.items():
            sessions[0].conf.set(key, value)
        return play(sessions[0], "settings.t", schema, since), {view: look(sessions[1], schema, view) for view in VIEWS}

    return play_under


@pytest.fixture(scope="module")
def usual(played: Play) -> Seen:
    """What a session sees that has set nothing."""
    seen = played("usual", {})[0]
    assert {step: error for step, error in seen.items() if isinstance(error, str)} == {}
    return seen


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_a_session_change_nothing_of_ours(played: Play, usual: Seen, name: str) -> None:
    seen, by_others = played(f"{list(SETTINGS).index(name)}", SETTINGS[name])
    differing = {step: (usual[step], value) for step, value in seen.items() if value != usual[step]}
    assert differing == {}
    assert by_others == {step: usual[step] for step in by_others}


@pytest.fixture
def local_times(spark: SparkSession) -> SparkSession:
    """A session whose catalog an earlier streamql made where spark.sql.timestampType was TIMESTAMP_NTZ; and a table to track."""
    session = spark.newSession()
    schema = fresh_schema(session, "local_times")
    session.conf.set("spark.streamql.catalog", f"{schema}_catalog")
    run(session, f"CREATE TABLE t (id BIGINT) {TRACKED}")
    run(session, f"CREATE SCHEMA {schema}_catalog")
    run(session, tables.create_events(f"{schema}_catalog", None).replace("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"))
    for view in tables.view_names():
        run(session, tables.create_view(f"{schema}_catalog", None, view, ("positions",), replace=False))
    return session


def test_a_catalog_whose_times_have_no_zone_is_empty_and_then_repaired(local_times: SparkSession) -> None:
    assert run(local_times, "SHOW STREAMS") == []
    run(local_times, "CREATE STREAM s ON TABLE t")
    assert [row["name"] for row in run(local_times, "SHOW STREAMS")] == ["s"]
    catalog = local_times.conf.get("spark.streamql.catalog")
    for table, column in (("events", "ended_at"), ("streams", "changed_at"), ("consumptions", "ended_at")):
        assert local_times.table(f"{catalog}.{table}").schema[column].dataType == TimestampType(), table


def test_of_two_repairs_at_once_one_is_refused(local_times: SparkSession) -> None:
    path = Path(data_of(local_times)) / "warehouse" / f"{local_times.conf.get('spark.streamql.catalog')}.db" / "events"
    events = EventLog(local_times, str(path))
    base = events.update()
    assert events.replace_columns(base, tables.columns_ddl())
    assert not events.replace_columns(base, tables.columns_ddl())


@pytest.mark.skipif(not IS_LONG, reason="takes minutes")
@pytest.mark.parametrize(
    "path", [p for p in transcripts() if p.name[:2] in FOR_TRANSCRIPTS], ids=lambda path: path.stem
)
def test_transcripts_hold_under_settings(path: Path, spark: SparkSession) -> None:
    set_in: set[int] = set()

    def run_sql(text: str, connection: SparkSession) -> DataFrame:
        if id(connection) not in set_in:
            set_in.add(id(connection))
            for key, value in FOR_TRANSCRIPTS_SET.items():
                connection.conf.set(key, value)
        return connection.sql(text)

    differences = [str(o.difference) for o in run_transcript(read(path), spark, run_sql) if o.difference is not None]
    assert differences == []
