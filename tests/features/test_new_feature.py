"""A feature is one folder, and one line in `streamql.features`: here `tests/features/mirrors`, and the line of the fixture."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

import streamql
from streamql import features
from streamql.cli.main import main
from streamql.cli.shell import topics
from streamql.cli.shell.pages import topic_of
from streamql.engine.doctor import examine
from streamql.feature import Feature, sql_functions, statement_types
from streamql.shared import FUNCTIONS, text_of
from tests.consume.support import TRACKED, data_of, fresh_schema, run
from tests.features.mirrors.feature import MIRRORS


@pytest.fixture
def mirrors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "FEATURES", (*features.FEATURES, MIRRORS))


@pytest.mark.usefixtures("mirrors")
def test_what_it_registers_works_everywhere(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    schema = fresh_schema(spark, "mirrors")
    run(spark, f"CREATE TABLE t (id INT) USING DELTA {TRACKED}")
    run(spark, "CREATE STREAM s ON TABLE mirror_of_t")
    run(spark, "INSERT INTO t VALUES (1), (2)")
    shown = [(f"{schema}.s", f"{schema}.mirror_of_t")]
    assert [tuple(row) for row in run(spark, "SHOW MIRROR STREAMS")] == shown
    assert [tuple(row)[2:4] for row in run(spark, "SHOW STREAMS")] == [(f"{schema}.mirror_of_t", "MIRROR")]
    assert [f.subject for f in examine(spark) if f.code == "MIRROR"] == [f"{schema}.s"]
    assert main(["--data", data_of(spark), "mirrors"]) == 0
    assert main(["--data", data_of(spark), "-e", "SHOW MIRROR STREAMS"]) == 0
    assert capsys.readouterr().out.startswith(f"{schema}.s\n")
    run(spark, "CREATE TABLE copy AS SELECT id FROM s")
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == 0, "the statement has consumed the stream"
    with pytest.raises(streamql.StreamqlError, match="did you mean SHOW MIRROR STREAMS"):
        run(spark, "SHOW MIROR STREAMS")
    assert main(["help", "mirrors"]) == 0
    assert "SHOW MIRROR STREAMS" in topics.names()
    assert "  SHOW MIRROR STREAMS;" in topics.find("show mirror streams").split("\n")
    run(spark, "DROP STREAM s")


@pytest.mark.parametrize("feature", features.FEATURES, ids=lambda feature: feature.name)
def test_the_record_of_each_feature_is_whole(feature: Feature) -> None:
    """All that is imported only when it is asked for is there, and nothing is registered twice."""
    assert [one.name for one in features.FEATURES].count(feature.name) == 1
    types = [one.type for one in feature.statements()]
    assert len(types) == len(set(types))
    assert set(types) <= set(statement_types())
    for command in feature.commands:
        assert {"run", "arguments"} <= vars(command.code).keys()
    assert all(topic_of(path).examples for path in feature.topics)
    assert all(callable(check.examine) for check in feature.checks())
    assert all(callable(source_type.open) for source_type in feature.source_types())
    assert all(callable(form) for form in feature.forms().values())


def test_the_functions_of_features_are_those_that_the_extension_knows() -> None:
    assert set(json.loads(text_of(FUNCTIONS))) == set(sql_functions())
