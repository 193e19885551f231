"""\\help: every statement of the dialect has an entry, and its examples run."""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import nullcontext

import pytest
from pyspark.sql import SparkSession

import streamql
from streamql.cli.shell import topics
from streamql.cli.shell.commands import CommandError
from streamql.cli.shell.completion import words as words_of_shell
from streamql.console.sql.result_types import ResultType, result_type_of
from streamql.console.sql.script import typed
from streamql.dialect import parse
from streamql.engine import statement_types
from streamql.sessions import run_sql

FAILS = " -- fails"
"""What is written behind the example of a statement that is to fail."""


def examples() -> list[str]:
    return [statement.text for text in written() for statement in typed(text.removesuffix(FAILS))]


def written(*, needs_kafka: bool | None = None) -> list[str]:
    """The examples as the topics show them. `needs_kafka`: only those that do, or do not; None: all."""
    return [
        text for topic in topics.all_topics() if needs_kafka in (None, topic.needs_kafka) for text in topic.examples
    ]


def test_every_statement_has_an_example() -> None:
    parsed = {type(statement) for text in examples() if (statement := parse(text)) is not None}
    assert parsed == set(statement_types())


def test_every_grammar_has_an_entry() -> None:
    shown = {grammar for topic in topics.all_topics() for grammar in topic.grammars}
    modules = pkgutil.walk_packages(streamql.__path__, "streamql.")
    for module in (m for m in modules if m.name.startswith("streamql.dialect.") or ".language." in m.name):
        names = vars(importlib.import_module(module.name))
        lacking = [name for name, value in names.items() if name.endswith("_GRAMMAR") and value not in shown]
        assert lacking == [], module.name


def test_every_topic_is_whole() -> None:
    for topic in topics.all_topics():
        assert topic.summary
        assert topic.grammars
        assert topic.text.endswith(".")
        assert topic.examples
        assert all(text.removesuffix(FAILS).endswith(";") for text in topic.examples)
        for name in (topic.name, *topic.also):
            assert topics.find(name).startswith(f"{topic.name}: ")
    names = [name.upper() for topic in topics.all_topics() for name in (topic.name, *topic.also)]
    assert len(names) == len(set(names))


def test_help_is_found_by_the_first_keywords_of_each_statement() -> None:
    for words, phrase in words_of_shell.phrases().items():
        if phrase.is_offered:
            assert topics.find(" ".join(words)), words
    assert topics.find("desc materialized view").startswith("SHOW DYNAMIC TABLES: ")
    assert topics.find("create or replace table stream").startswith("CREATE STREAM: ")
    assert topics.find("drop connection").startswith("CREATE STORAGE CONNECTION: ")


def test_it_fits_a_terminal() -> None:
    for topic in topics.all_topics():
        assert max(map(len, topics.find(topic.name).split("\n"))) <= 80 + 20  # examples are not wrapped
    assert max(map(len, topics.overview().split("\n"))) <= 80


def test_what_is_looked_for() -> None:
    assert topics.find("create stream;").startswith("CREATE STREAM")
    assert topics.find("Create").startswith("CREATE STREAM")
    assert topics.find("commit").startswith("BEGIN TRANSACTION")
    assert topics.find("table_stream_mode").startswith("CREATE STREAM")
    with pytest.raises(CommandError) as e:
        topics.find("create steam")
    assert "CREATE STREAM" in e.value.hint


def test_the_examples_on_kafka_parse() -> None:
    """They run in tests that have brokers."""
    assert all(parse(text) is not None for text in written(needs_kafka=True))


def test_the_examples_run(spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE shell_topics")
    spark.sql("USE shell_topics")
    try:
        for shown in written(needs_kafka=False):
            with pytest.raises(Exception, match="USER_RAISED_EXCEPTION") if shown.endswith(FAILS) else nullcontext():
                for statement in typed(shown.removesuffix(FAILS)):
                    frame = run_sql(statement.text, spark)
                    if result_type_of(statement.text) is ResultType.QUERY:
                        frame.collect()
        assert {tuple(row) for row in spark.table("copy").collect()} == {(1, 11), (2, 20)}
    finally:
        spark.sql("USE default")
