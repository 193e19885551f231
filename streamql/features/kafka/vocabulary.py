"""The words of storage connections and external tables for completion, beside the first keywords of statements (`language/phrases.py`)."""

from __future__ import annotations

from streamql.dialect.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    keywords=frozenset(("BOOTSTRAP_SERVERS", "SECURITY_PROTOCOL", "SASL_MECHANISM", "SASL_JAAS_CONFIG")),
    after={
        ("BOOTSTRAP_SERVERS", "="): ("['host:9092']",),
        ("SECURITY_PROTOCOL", "="): ("'PLAINTEXT'", "'SSL'", "'SASL_PLAINTEXT'", "'SASL_SSL'"),
        ("SASL_MECHANISM", "="): ("'PLAIN'", "'SCRAM-SHA-256'", "'SCRAM-SHA-512'", "'OAUTHBEARER'", "'GSSAPI'"),
    },
    lists={"external table": "SHOW EXTERNAL TABLES"},
)
