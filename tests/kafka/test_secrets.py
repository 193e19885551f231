"""A password is used, and its text is nowhere but where its reference points to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamql.cli.shell.history import append, is_kept
from streamql.delta.jvm import jvm
from tests.consume.support import ROOT, TIMEOUT_SECONDS, data_of
from tests.kafka import topics
from tests.kafka.broker import USER
from tests.kafka.secretive import MODULE, connection
from tests.kafka.support import Place, until
from tests.kafka.topics import Message

REFERENCE = "${env:READER_PASSWORD}"


@pytest.fixture
def password_file(place: Place, tmp_path: Path) -> Path:
    path = tmp_path / "passwords"
    entries = {
        "right": place.broker.password,
        "wrong": "h4rdToGuess9",
        "quoted": 'q"uOted7 8xyz;',
        "number": "n0tAnumber5",
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))
    return path


def files_with(directory: Path, text: str) -> list[Path]:
    """The files below a directory that have a text in them."""
    found = []
    for path in directory.rglob("*"):
        if path.is_file() and text.encode() in path.read_bytes():
            found.append(path)
    return found


def test_a_password_of_a_file_is_used_and_shown_nowhere(place: Place, password_file: Path) -> None:
    topic = place.topic("plain")
    place.send(topic, "a", "b")
    reference = f"${{file:{password_file}:right}}"
    place.run(connection(f"{place.schema}_sasl", place.broker.sasl_bootstrap, reference))
    place.table("k", topic, connection=f"{place.schema}_sasl")
    place.stream()
    place.sink()
    assert place.positions("k") == [(0, 0), (0, 1)]
    place.fill()
    place.send(topic, "c")
    select, insert = "SELECT value FROM s", "INSERT INTO sink SELECT partition, offset, '' FROM s"
    shown = {
        text: place.run(text)
        for text in (
            "SHOW CONNECTIONS",
            "SHOW EXTERNAL TABLES",
            "SHOW STREAMS",
            f"DESC STORAGE CONNECTION {place.schema}_sasl",
            "DESC EXTERNAL TABLE k",
            "DESC k",
            "DESC STREAM s",
            "SHOW CREATE EXTERNAL TABLE k",
            "SHOW CREATE STREAM s",
            *(f"EXPLAIN {mode} {text}" for mode in ("", "EXTENDED", "FORMATTED", "COST") for text in (select, insert)),
            "EXPLAIN CODEGEN SELECT value FROM s",
            "SELECT * FROM streamql.consumptions",
            "SELECT * FROM streamql.streams",
            "SELECT * FROM streamql.events",
            "SELECT * FROM stream_backlog('s')",
        )
    }
    secret = place.broker.password
    for text, rows in shown.items():
        assert rows, text
        assert secret not in str(rows), text
    assert reference in str(shown[f"DESC STORAGE CONNECTION {place.schema}_sasl"])
    data = Path(data_of(place.spark))
    assert files_with(data, secret) == []
    assert files_with(data, f"{password_file}:right"), "the search finds what is there"


@pytest.mark.parametrize(
    ("key", "text"), [("wrong", "h4rdToGuess9"), ("quoted", "uOted7"), ("quoted", "8xyz"), ("missing", "passwords:")]
)
def test_a_password_that_is_refused_is_not_told(place: Place, password_file: Path, key: str, text: str) -> None:
    topic = place.topic("plain")
    place.run(connection(f"{place.schema}_sasl", place.broker.sasl_bootstrap, f"${{file:{password_file}:{key}}}"))
    found = place.refused(
        f"CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' = '{topic}') CONNECTION {place.schema}_sasl"
    )
    assert found.code == "KAFKA_REFUSED", found
    assert f"{place.schema}_sasl" in found.message
    assert text not in str(found), found
    assert "security settings" in found.hint


def test_a_password_that_is_corrected_counts_at_once(place: Place, tmp_path: Path) -> None:
    """The reference stays the same, and so does the statement: what it stands for is read again."""
    topic = place.topic("plain")
    passwords = tmp_path / "passwords"
    passwords.write_text("it=n0tR1ght\n")
    place.run(connection(f"{place.schema}_sasl", place.broker.sasl_bootstrap, f"${{file:{passwords}:it}}"))
    make = f"CREATE EXTERNAL TABLE k2 USING KAFKA OPTIONS ('topics' = '{topic}') CONNECTION {place.schema}_sasl"
    assert place.refused(make).code == "KAFKA_REFUSED"
    passwords.write_text(f"it={place.broker.password}\n")
    place.run(make)
    assert place.positions("k2") == []


def admin_clients(place: Place) -> int:
    """How many of Kafka's admin clients there are in the JVM: each has a thread."""
    threads = jvm(place.spark).java.lang.Thread.getAllStackTraces().keySet().toArray()
    return sum("kafka-admin-client-thread" in thread.getName() for thread in threads)


def test_a_client_that_was_refused_does_not_try_again_by_itself(place: Place) -> None:
    """Kafka's client goes on with a wrong password for as long as it lives, and brokers may lock its user out."""
    topic = place.topic("plain")
    before = admin_clients(place)
    place.run(connection(f"{place.schema}_sasl", place.broker.sasl_bootstrap, "${env:NO_SUCH_VARIABLE}"))
    make = f"CREATE EXTERNAL TABLE k2 USING KAFKA OPTIONS ('topics' = '{topic}') CONNECTION {place.schema}_sasl"
    assert place.refused(make).code == "KAFKA_REFUSED"
    until(lambda: admin_clients(place) <= before, "the client is still there")


def test_a_secret_in_another_setting_is_not_told(place: Place, password_file: Path) -> None:
    topic = place.topic("plain")
    place.connect(
        f"{place.schema}_odd",
        place.broker.bootstrap,
        f"OPTIONS ('reconnect.backoff.ms' = '${{file:{password_file}:number}}')",
    )
    found = place.refused(
        f"CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' = '{topic}') CONNECTION {place.schema}_odd"
    )
    assert found.code == "KAFKA_REFUSED", found
    assert "n0tAnumber5" not in str(found)


def test_a_user_without_a_password_waits_for_no_one(place: Place) -> None:
    """A client that does not say who it is gets no answer from a listener that wants to know."""
    topic = place.topic("plain")
    place.connect(f"{place.schema}_bare", place.broker.sasl_bootstrap)
    place.run("SET spark.streamql.kafkaTimeout = 2s")
    try:
        found = place.refused(
            f"CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' = '{topic}') CONNECTION {place.schema}_bare"
        )
    finally:
        place.spark.conf.unset("spark.streamql.kafkaTimeout")
    assert found.code == "KAFKA_UNREACHABLE"


def test_a_literal_password_is_refused_and_quoted_nowhere(place: Place, tmp_path: Path) -> None:
    literal = "pl41nT3xt"
    text = connection(f"{place.schema}_x", place.broker.sasl_bootstrap, literal)
    found = place.refused(text)
    assert found.code == "INVALID_PROPERTY"
    assert literal not in str(found)
    assert "${env:NAME}" in found.hint
    options = (
        f"'topics' = 't', 'kafka.sasl.jaas.config' = '{MODULE} required username=\"{USER}\" password=\"{literal}\";'"
    )
    found = place.refused(f"CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ({options}) CONNECTION {place.connection}")
    assert found.code == "INVALID_PROPERTY"
    assert literal not in str(found)
    assert files_with(Path(data_of(place.spark)), literal) == []
    append(tmp_path / "history", text)
    assert not is_kept(text)


def test_a_process_that_logs_all_and_shows_its_pages(place: Place, tmp_path: Path) -> None:
    topic = place.topic("plain")
    topics.send(place.broker.bootstrap, topic, [Message("a"), Message("b")])
    secret = place.broker.password
    command = [
        sys.executable,
        "-m",
        "tests.kafka.secretive",
        str(tmp_path / "data"),
        place.broker.sasl_bootstrap,
        topic,
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "READER_PASSWORD": secret, "STREAMQL_LOG_LEVEL": "info"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert answer["offsets"] == [0, 1]
    assert "AdminClientConfig values" in done.stderr
    assert "ConsumerConfig values" in done.stderr, "the log has what Kafka's clients say"
    assert secret not in done.stderr
    for path, page in answer["pages"].items():
        assert secret not in page, path
    assert any("ConsumeCommand" in page for path, page in answer["pages"].items() if "sql?" in path)
    assert files_with(tmp_path / "data", secret) == []
    assert files_with(tmp_path / "data", REFERENCE)
