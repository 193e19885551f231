"""Sessions without Kafka's jars say how to get them; those that are started with the connector read topics."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.frontends.support import finished, streamql
from tests.kafka import topics
from tests.kafka.broker import Broker
from tests.kafka.topics import Message

pytestmark = pytest.mark.spark

SETUP = """
CREATE TABLE t (id BIGINT);
ALTER TABLE t SET PROPERTIES ('change_tracking' = 'true');
CREATE STREAM d ON TABLE t;
CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = ['{bootstrap}'] SECURITY_PROTOCOL = 'PLAINTEXT';
CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('group_id' = 'g', 'topics' = 'without_jars') CONNECTION c;
CREATE STREAM s ON TABLE k WITH (SHOW_INITIAL_ROWS = TRUE);
SELECT concat('read ', CAST(value AS STRING)) FROM k ORDER BY offset;
"""

TRIED = """
import streamql, sys
spark = streamql.session(sys.argv[1])
for text in (
    "CREATE EXTERNAL TABLE x USING KAFKA OPTIONS ('topics' = 'without_jars') CONNECTION c",
    "SELECT * FROM k",
    "SELECT * FROM s",
    "SELECT stream_has_data('s')",
    "CREATE STREAM y ON TABLE k",
):
    try:
        streamql.sql(text, spark).collect()
    except streamql.StreamqlError as e:
        print(text[:20], "|", e.code, "|", "--with kafka" in e.hint)
for r in streamql.sql("SHOW STREAMS", spark).collect():
    print(r["name"], "|", r["has_data"], "|", (r["invalid_reason"] or "").split(":")[0])
print(len(streamql.sql("DESC k", spark).collect()), "columns")
print([r["name"] for r in streamql.sql("SHOW EXTERNAL TABLES", spark).collect()])
print({r["info_name"]: r["info_value"] for r in streamql.sql("DESC EXTERNAL TABLE k", spark).collect()}["invalid_reason"][:20])
"""


@pytest.fixture(scope="module")
def lake(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with an external table, made and read by bin/spark-sql with the connector."""
    topics.create(broker.bootstrap, "without_jars")
    topics.send(broker.bootstrap, "without_jars", [Message("a"), Message("b")])
    data = tmp_path_factory.mktemp("kafka") / "lake"
    script = data.parent / "setup.sql"
    script.write_text(SETUP.format(bootstrap=broker.bootstrap))
    done = finished(streamql(data, "--with", "kafka", "spark-sql", "-S", "-f", str(script)))
    assert (done.returncode, done.stdout) == (0, "read a\nread b\n"), done.stderr
    return data


def test_a_session_without_the_connector_names_the_switch(lake: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRIED, str(lake)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "CREATE EXTERNAL TABL | CONNECTOR_NOT_LOADED | True",
        "SELECT * FROM k | CONNECTOR_NOT_LOADED | True",
        "SELECT * FROM s | CONNECTOR_NOT_LOADED | True",
        "SELECT stream_has_da | CONNECTOR_NOT_LOADED | True",
        "CREATE STREAM y ON T | CONNECTOR_NOT_LOADED | True",
        "d | False | ",
        "s | None | CONNECTOR_NOT_LOADED",
        "8 columns",
        "['k']",
        "CONNECTOR_NOT_LOADED",
    ]


def test_conf_names_the_jars(lake: Path) -> None:
    done = finished([sys.executable, "-m", "streamql", "--with", "kafka", "conf"])
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("spark.jars ")]
    jars = line.removeprefix("spark.jars ").split(",")
    for name in ("spark-sql-kafka-0-10_2.13", "kafka-clients", "commons-pool2", "spark-token-provider-kafka-0-10_2.13"):
        assert [jar for jar in jars if Path(jar).name.startswith(name) and Path(jar).exists()], name
    without = finished([sys.executable, "-m", "streamql", "conf"])
    assert "kafka" not in without.stdout
