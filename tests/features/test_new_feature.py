"""A feature is one folder, and one line in `streamql.features`: here `tests/features/mirrors`, and the line of the fixture."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

import streamql
from streamql import features
from streamql.cli.main import main
from streamql.cli.shell import topics
from streamql.cli.shell.completion import words
from streamql.cli.shell.completion.statements import complete
from streamql.cli.shell.highlight import pieces
from streamql.cli.shell.pages import topic_of
from streamql.cli.shell.snapshot import Snapshot
from streamql.dialect import parse, rewrite
from streamql.dialect.rewrites import dollar_names
from streamql.dialect.statements import CreateStream
from streamql.engine import statement_types
from streamql.engine.doctor import checks, examine
from streamql.engine.functions import sql_functions
from streamql.feature import Feature
from streamql.features.translate.text.shield import shield
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
    run(spark, "CREATE STREAM s ON MIRROR mirror_of_t")
    run(spark, "INSERT INTO t VALUES (1), (2)")
    shown = [(f"{schema}.s", f"{schema}.mirror_of_t")]
    assert [tuple(row) for row in run(spark, "SHOW MIRROR STREAMS")] == shown
    assert [tuple(row)[2:4] for row in run(spark, "SHOW STREAMS")] == [(f"{schema}.mirror_of_t", "MIRROR")]
    assert [f.subject for f in examine(spark) if f.code == "MIRROR"] == [f"{schema}.s"]
    assert main(["--data", data_of(spark), "mirrors"]) == 0
    assert main(["--data", data_of(spark), "-e", "SHOW MIRROR STREAMS"]) == 0
    assert capsys.readouterr().out.startswith(f"{schema}.s\n")
    # The jar has no prefilter of this feature, so the comment has a word for which Python is asked.
    assert len(run(spark, "SELECT id FROM MIRROR OF t -- CONSUME")) == 2
    run(spark, "CREATE TABLE copy AS SELECT id FROM s")
    assert run(spark, "SELECT count(*) AS n FROM s")[0]["n"] == 0, "the statement has consumed the stream"
    with pytest.raises(streamql.StreamqlError, match="did you mean SHOW MIRROR STREAMS"):
        run(spark, "SHOW MIROR STREAMS")
    assert main(["help", "mirrors"]) == 0
    assert "SHOW MIRROR STREAMS" in topics.names()
    assert "  SHOW MIRROR STREAMS;" in topics.find("show mirror streams").split("\n")
    run(spark, "DROP STREAM s")


@pytest.mark.usefixtures("mirrors")
def test_create_stream_takes_its_sources() -> None:
    statement = parse("CREATE STREAM s ON MIRROR m")
    assert isinstance(statement, CreateStream)
    assert (statement.source_type, statement.source) == ("MIRROR", ("m",))
    with pytest.raises(streamql.StreamqlError) as e:
        parse("CREATE STREAM s ON MIROR m")
    assert "MATERIALIZED VIEW, EXTERNAL TABLE or MIRROR" in e.value.message
    assert e.value.hint == "did you mean MIRROR?"


@pytest.mark.usefixtures("mirrors")
def test_what_it_adds_to_statements_of_spark_is_rewritten() -> None:
    text = "SELECT * FROM MIRROR OF db.t AS m JOIN s WITH CONSUME ON m.id = s.id"
    rewritten = rewrite(text, lambda _: False, lambda _: ())
    assert rewritten is not None
    assert rewritten.text == "SELECT * FROM  db.t AS m JOIN s  ON m.id = s.id"
    assert rewritten.consumed == (("s",),)
    assert set(shield(text).hidden.values()) == {"MIRROR OF db.t", "s WITH CONSUME"}, "the translation keeps it"


@pytest.mark.usefixtures("mirrors")
def test_the_shell_completes_and_highlights_its_statements() -> None:
    for typed, expected in (("SH", "SHOW MIRROR STREAMS"), ("SHOW ", "MIRROR STREAMS"), ("SHOW MIRROR ", "STREAMS")):
        assert expected in [candidate.text for candidate in complete(typed, "", Snapshot()).candidates]
    assert ("keyword", "MIRROR") in pieces("SHOW MIRROR STREAMS")


@pytest.mark.usefixtures("mirrors")
def test_the_doctor_checks_what_streams_read_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the features."""
    expected = [
        *("Entries", "Views", "Rows", "Claims", "ExternalTables", "DynamicTables"),
        *("Sources", "Staleness", "Files", "Extensions", "Storage", "Mirrors", "Violations", "UniqueKeys", "Tasks"),
    ]
    assert [type(check).__name__ for check in checks()] == expected
    monkeypatch.setattr(features, "FEATURES", features.FEATURES[::-1])
    assert [type(check).__name__ for check in checks()] == expected


@pytest.mark.parametrize("feature", features.FEATURES, ids=lambda feature: feature.name)
def test_the_record_of_each_feature_is_whole(feature: Feature) -> None:
    """All that is imported only when it is asked for is there, and nothing is registered twice."""
    assert [one.name for one in features.FEATURES].count(feature.name) == 1
    types = [one.type for one in feature.statements()]
    assert len(types) == len(set(types))
    assert set(types) <= set(statement_types())
    for command in feature.commands:
        assert {"run", "arguments"} <= vars(command.code).keys()
    assert all(callable(rule.find) for rule in feature.rewrites())
    assert all(topic_of(path).examples for path in feature.topics)
    assert all(callable(check.examine) for check in feature.checks())
    assert all(callable(source_type.open) for source_type in feature.source_types())
    assert all(callable(form) for form in feature.forms().values())


def test_the_functions_of_features_are_those_that_the_extension_knows() -> None:
    assert set(json.loads(text_of(FUNCTIONS))) == set(sql_functions())


def test_completion_knows_the_functions_that_users_write() -> None:
    """The others are those that rewrites write in the place of something else."""
    rewritten = {name for name in sql_functions() if name.startswith("streamql_")} | set(
        dollar_names.FUNCTIONS.values()
    )
    assert {*words.functions(), *rewritten} == {*sql_functions(), *dollar_names.FUNCTIONS}
