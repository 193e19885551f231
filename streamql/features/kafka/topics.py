"""The texts of \\help on storage connections and external tables, as data."""

from __future__ import annotations

from streamql.feature import Topic
from streamql.features.kafka.language.connections import (
    CREATE_CONNECTION_GRAMMAR,
    DESCRIBE_CONNECTION_GRAMMAR,
    DROP_CONNECTION_GRAMMAR,
    SHOW_CONNECTIONS_GRAMMAR,
)
from streamql.features.kafka.language.tables import (
    CREATE_EXTERNAL_GRAMMAR,
    DESCRIBE_EXTERNAL_GRAMMAR,
    DROP_EXTERNAL_GRAMMAR,
    SHOW_CREATE_EXTERNAL_GRAMMAR,
    SHOW_EXTERNAL_GRAMMAR,
)

TOPICS = (
    Topic(
        "CREATE STORAGE CONNECTION",
        "say how Kafka's brokers are reached",
        (
            CREATE_CONNECTION_GRAMMAR,
            SHOW_CONNECTIONS_GRAMMAR,
            DESCRIBE_CONNECTION_GRAMMAR,
            DROP_CONNECTION_GRAMMAR,
        ),
        "Keys are Kafka's own settings: SASL_MECHANISM stands for sasl.mechanism. A secret is never written into the statement: write a "
        "reference such as ${env:NAME} or ${file:/run/secrets/kafka:password}, which Kafka's client resolves when it connects.",
        (
            """CREATE STORAGE CONNECTION shop TYPE KAFKA BOOTSTRAP_SERVERS = ['broker:9092']
SECURITY_PROTOCOL = 'SASL_SSL' SASL_MECHANISM = 'PLAIN'
SASL_JAAS_CONFIG = 'org.apache.kafka.common.security.plain.PlainLoginModule required
username="reader" password="${env:KAFKA_PASSWORD}";';""",
            "SHOW CONNECTIONS LIKE 'sh%';",
            "DESCRIBE STORAGE CONNECTION shop;",
        ),
        (
            "STORAGE CONNECTION",
            "secrets",
        ),
        needs_kafka=True,
    ),
    Topic(
        "CREATE EXTERNAL TABLE",
        "read a Kafka topic as a table, or by streams",
        (
            CREATE_EXTERNAL_GRAMMAR,
            SHOW_EXTERNAL_GRAMMAR,
            DESCRIBE_EXTERNAL_GRAMMAR,
            SHOW_CREATE_EXTERNAL_GRAMMAR,
            DROP_EXTERNAL_GRAMMAR,
        ),
        "The columns are topic, partition, offset, timestamp, timestamp_type, headers, key and value. A stream on the "
        "table is APPEND_ONLY. Its offset is a position: the next offset of each partition. AT (OFFSET => '{\"0\": 17}') "
        "and SET OFFSET '{\"0\": 17}' name one. Settings of Kafka's client begin with kafka. in OPTIONS. "
        "Tables USING another format are Spark's.",
        (
            """CREATE EXTERNAL TABLE clicks USING KAFKA
OPTIONS ('topics' = 'clicks', 'group_id' = 'shop') CONNECTION shop;""",
            "CREATE STREAM clicks_st ON EXTERNAL TABLE clicks APPEND_ONLY = TRUE;",
            'ALTER STREAM clicks_st SET OFFSET \'{"0": 17, "1": 20}\';',
            "SHOW EXTERNAL TABLES;",
            "DESCRIBE EXTERNAL TABLE clicks;",
            "SHOW CREATE EXTERNAL TABLE clicks;",
            "DROP STREAM clicks_st;",
            "DROP EXTERNAL TABLE clicks;",
            "DROP CONNECTION shop;",
        ),
        (
            "EXTERNAL TABLE",
            "Kafka",
        ),
        needs_kafka=True,
    ),
)
