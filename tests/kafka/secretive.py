"""A process that consumes a topic with a password from its environment, and prints what Spark's web pages say of it:
`python -m tests.kafka.secretive DATA SASL_BOOTSTRAP TOPIC`. The password is in READER_PASSWORD.
"""

from __future__ import annotations

import json
import sys
import urllib.request

from pyspark.sql import SparkSession

import streamql
from tests.kafka.broker import USER
from tests.small import SHORT_LIVED

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def connection(name: str, bootstrap: str, password: str) -> str:
    """The statement that makes a connection with SASL/PLAIN. `password`: a reference to it."""
    jaas = f'{MODULE} required username="{USER}" password="{password}";'
    return (
        f"CREATE OR REPLACE STORAGE CONNECTION {name} TYPE KAFKA BOOTSTRAP_SERVERS = ['{bootstrap}'] "
        f"SECURITY_PROTOCOL = 'SASL_PLAINTEXT' SASL_MECHANISM = 'PLAIN' SASL_JAAS_CONFIG = '{jaas}'"
    )


def pages(spark: SparkSession) -> dict[str, str]:
    """Spark's web pages and the answers of its REST API, by path."""
    root = spark.sparkContext.uiWebUrl
    assert root is not None

    def get(path: str) -> str:
        with urllib.request.urlopen(f"{root}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    (application,) = json.loads(get("/api/v1/applications"))
    api = f"/api/v1/applications/{application['id']}"
    found = {path: get(path) for path in (f"{api}/sql?details=true&planDescription=true&length=100",)}
    executions = [e["id"] for e in json.loads(next(iter(found.values())))]
    assert executions
    paths = [f"/SQL/execution/?id={i}" for i in executions]
    paths += [f"{api}/{part}" for part in ("environment", "jobs", "stages?details=true", "allexecutors")]
    paths += ["/jobs/", "/stages/", "/SQL/", "/environment/", "/executors/"]
    return found | {path: get(path) for path in paths}


def main(data: str, bootstrap: str, topic: str) -> None:
    """Makes connection, table and stream, consumes once, and prints the pages as JSON."""
    conf = {
        "spark.master": "local[2]",
        **SHORT_LIVED,
        "spark.streamql.connectors": "kafka",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
    }
    spark = streamql.session(data, conf)
    for text in (
        connection("c", bootstrap, "${env:READER_PASSWORD}"),
        f"CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('group_id' = 'g', 'topics' = '{topic}') CONNECTION c",
        "CREATE STREAM s ON TABLE k WITH (SHOW_INITIAL_ROWS = TRUE)",
        "CREATE TABLE sink (o BIGINT)",
        "MERGE INTO sink t USING s ON t.o = s.offset WHEN NOT MATCHED THEN INSERT (o) VALUES (s.offset)",
    ):
        streamql.sql(text, spark).collect()
    offsets = sorted(r["offset"] for r in streamql.sql("SELECT offset FROM k", spark).collect())
    assert sorted(r["o"] for r in streamql.sql("SELECT o FROM sink", spark).collect()) == offsets
    print(json.dumps({"offsets": offsets, "pages": pages(spark)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
