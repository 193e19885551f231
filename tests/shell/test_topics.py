"""\\help: every statement of the dialect has an entry, and its examples are those of its page, which runs."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import streamql
from streamql.cli.shell import topics
from streamql.cli.shell.commands import CommandError
from streamql.cli.shell.completion import words as words_of_shell
from streamql.cli.shell.pages import FAILS, Topic
from streamql.console.sql.script import typed
from streamql.dialect import parse
from streamql.dialect.create import CREATE_GRAMMAR
from streamql.dialect.properties import PROPERTIES_GRAMMAR
from streamql.engine import statement_types
from tests.docs.pages import pages
from tests.transcripts.script import read

LINES_MAX = 30
WIDER = {CREATE_GRAMMAR, PROPERTIES_GRAMMAR}
"""Grammars for errors, which leave out what the page has."""

FOUND = {
    "ALTER TABLE": "change_tracking, change tracking, data_retention_days, retention, VACUUM",
    "CREATE STREAM": "create stream;, Create, CREATE TABLE STREAM, TABLE_STREAM_MODE, SHOW_INITIAL_ROWS",
    "ALTER STREAM": "SET OFFSET, RELEASE",
    "DROP STREAM": "DROP TABLE STREAM",
    "SHOW STREAMS": "SHOW TABLE STREAMS, stale, stale_after",
    "DESCRIBE STREAM": "DESC STREAM",
    "SELECT": "CONSUME, WITH CONSUME, MAX_BATCH_SIZE, reading",
    "AT": "AT, BEFORE, END",
    "INSERT": "consuming, CREATE TABLE AS",
    "BEGIN TRANSACTION": "commit, ROLLBACK, ROLLBACK STATEMENT, START TRANSACTION, transactions",
    "Functions": "stream_has_data, stream_backlog, stream_status, SYSTEM$STREAM_HAS_DATA, SYSTEM$STREAM_GET_TABLE_TIMESTAMP",
    "Ledger and system tables": "ledger, consumptions, events, streamql.consumptions",
    "CREATE DYNAMIC TABLE": "CREATE MATERIALIZED VIEW, DYNAMIC TABLE, MATERIALIZED VIEW, TARGET_LAG, REFRESH INTERVAL",
    "REFRESH DYNAMIC TABLE": "REFRESH MATERIALIZED VIEW, refresh",
    "VERIFY DYNAMIC TABLE": "VERIFY, VERIFY MATERIALIZED VIEW",
    "SHOW DYNAMIC TABLES": "SHOW MATERIALIZED VIEWS, lag",
    "SHOW DYNAMIC TABLE REFRESH HISTORY": "SHOW MATERIALIZED VIEW REFRESH HISTORY, REFRESH HISTORY",
    "DESCRIBE DYNAMIC TABLE": "DESC DYNAMIC TABLE, DESCRIBE MATERIALIZED VIEW, DESC MATERIALIZED VIEW, SHOW CREATE DYNAMIC TABLE, "
    "SHOW CREATE MATERIALIZED VIEW",
    "ALTER DYNAMIC TABLE": "ALTER MATERIALIZED VIEW, SUSPEND, RESUME, UNSET SCHEDULE",
    "DROP DYNAMIC TABLE": "DROP MATERIALIZED VIEW",
    "CREATE TASK": "TASK_AUTO_RETRY_ATTEMPTS, FINALIZE",
    "EXECUTE TASK": "RETRY LAST",
    "SHOW TASK HISTORY": "TASK HISTORY",
    "DESCRIBE TASK": "DESC TASK, SHOW CREATE TASK",
    "CREATE STORAGE CONNECTION": "STORAGE CONNECTION, secrets, Kafka",
    "SHOW CONNECTIONS": "SHOW STORAGE CONNECTIONS, DESCRIBE STORAGE CONNECTION, DESC STORAGE CONNECTION, DROP STORAGE CONNECTION, "
    "DROP CONNECTION",
    "CREATE EXTERNAL TABLE": "EXTERNAL TABLE, group_id",
    "SHOW EXTERNAL TABLES": "DESCRIBE EXTERNAL TABLE, DESC EXTERNAL TABLE, SHOW CREATE EXTERNAL TABLE, DROP EXTERNAL TABLE",
    "tablestore_records": "6-tuples, export, StreamReader, DataX, TableStore",
}
"""What a user types behind \\help, by the entry that is shown."""


def examples() -> list[str]:
    return [
        statement.text
        for topic in topics.all_topics()
        for text in topic.examples
        for statement in typed(text.removesuffix(FAILS))
    ]


def test_each_page_of_the_reference_has_an_entry() -> None:
    reference = {path for path in pages() if path.parent.name == "sql" and path.name != "README.md"}
    assert {topic.path for topic in topics.all_topics()} == reference


def test_every_statement_has_an_example() -> None:
    parsed = {type(statement) for text in examples() if (statement := parse(text)) is not None}
    assert parsed == set(statement_types())


def test_every_grammar_has_an_entry() -> None:
    """As errors show it, whatever the line breaks."""
    shown = [" ".join(topic.grammar.split()) for topic in topics.all_topics()]
    modules = pkgutil.walk_packages(streamql.__path__, "streamql.")
    for module in (m for m in modules if m.name.startswith("streamql.dialect.") or ".language." in m.name):
        grammars = {
            name: text for name, text in vars(importlib.import_module(module.name)).items() if name.endswith("_GRAMMAR")
        }
        lacking = [name for name, text in grammars.items() if not any(" ".join(text.split()) in one for one in shown)]
        assert [name for name in lacking if grammars[name] not in WIDER] == [], module.name


@pytest.mark.parametrize("topic", topics.all_topics(), ids=lambda topic: topic.path.stem)
def test_every_topic_is_whole(topic: Topic) -> None:
    assert topic.summary
    assert topic.grammar
    assert topic.text.endswith(".")
    assert topic.examples
    assert all(text.removesuffix(FAILS).endswith(";") for text in topic.examples)
    for name in topic.names:
        assert topics.find(name).startswith(f"{topic.name}: ")
    assert topics.find(topic.name).endswith(f"\nmore: {topic.path}")


def test_names_are_of_one_topic() -> None:
    names = [name.upper() for topic in topics.all_topics() for name in topic.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("topic", topics.all_topics(), ids=lambda topic: topic.path.stem)
def test_the_examples_are_steps_of_the_page(topic: Topic) -> None:
    """The tests of the pages run them, with their results."""
    steps = {step.text.strip().rstrip(";") for step in read(topic.path).steps}
    assert {text.removesuffix(FAILS).rstrip(";") for text in topic.examples} <= steps


def test_help_is_found_by_the_first_keywords_of_each_statement() -> None:
    for words, phrase in words_of_shell.phrases().items():
        if phrase.is_offered:
            assert topics.find(" ".join(words)), words
    assert topics.find("desc materialized view").startswith("DESCRIBE DYNAMIC TABLE: ")
    assert topics.find("create or replace table stream").startswith("CREATE STREAM: ")
    assert topics.find("drop connection").startswith("SHOW CONNECTIONS: ")


def test_it_fits_a_terminal() -> None:
    for topic in topics.all_topics():
        *lines, _ = topics.find(topic.name).split("\n")  # the last one is a path
        assert max(map(len, lines)) <= 80 + 20  # examples are not wrapped
        assert len(lines) <= LINES_MAX
    assert max(map(len, topics.overview().split("\n"))) <= 80


@pytest.mark.parametrize("name", FOUND)
def test_what_is_looked_for(name: str) -> None:
    for wanted in (name, *FOUND[name].split(", ")):
        assert topics.find(wanted).startswith(f"{name}: "), wanted


@pytest.mark.parametrize(
    ("wanted", "name"),
    [("create steam", "CREATE STREAM"), ("create materialized veiw", "CREATE DYNAMIC TABLE"), ("xyzzy", "")],
)
def test_what_is_misspelt_gets_a_hint(wanted: str, name: str) -> None:
    with pytest.raises(CommandError) as e:
        topics.find(wanted)
    assert (name or "\\help lists") in e.value.hint
