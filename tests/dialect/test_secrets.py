"""Secrets in statements about Kafka: which keys name one, what stands for one, and no error that holds one."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamql.dialect import concealed, explain_rejected, parse, quote_string
from streamql.dialect.secrets import literal_secret
from streamql.errors import StreamqlError
from streamql.features.kafka.language.statements import (
    CreateConnection,
)

# fmt: off
SECRETS = [
    ("ssl.key.password", "hunter2", True),
    ("ssl.keystore.password", "", True),
    ("ssl.truststore.password", "${env:P}", False),
    ("ssl.keystore.password", "${file:/run/secrets/kafka:password}", False),
    ("ssl.key.password", "${directory:/run/secrets:kafka.password}", False),
    ("ssl.key.password", "${my-vault.2:secret/kafka:password}", False),
    ("ssl.key.password", " ${env:P}", True),
    ("ssl.key.password", "${env:P}x", True),
    ("ssl.key.password", "${env:P}${env:Q}", True),
    ("ssl.key.password", "${P}", True),
    ("ssl.key.password", "${env:}", True),
    ("ssl.key.password", "$env:P", True),
    ("ssl.keystore.key", "-----BEGIN PRIVATE KEY-----", True),
    ("ssl.keystore.key", "${file:/k.properties:key}", False),
    ("ssl.key", "x", True),
    ("ssl.key.pem", "x", True),
    ("ssl.key.location", "x", False),
    ("ssl.keystore.certificate.chain", "x", False),
    ("ssl.truststore.certificates", "x", False),
    ("ssl.truststore.location", "/a/b", False),
    ("ssl.keystore.location", "/a/b", False),
    ("ssl.keystore.type", "PEM", False),
    ("sasl.mechanism", "PLAIN", False),
    ("security.protocol", "SASL_SSL", False),
    ("sasl.oauthbearer.token.endpoint.url", "https://h", False),
    ("sasl.oauthbearer.client.credentials.client.id", "x", False),
    ("sasl.oauthbearer.client.credentials.client.secret", "x", True),
    ("sasl.oauthbearer.assertion.private.key.file", "/a", False),
    ("sasl.oauthbearer.assertion.private.key.passphrase", "x", True),
    ("basic.auth.credentials.source", "USER_INFO", False),
    ("schema.registry.basic.auth.user.info", "u:p", True),
    ("key.deserializer", "x", False),
    ("delegation.token.expiry.ms", "1", False),
    ("client.id", "x", False),
    ("group.id", "x", False),
    ("sasl.password", "x", True),
    ("SASL_PASSWORD", "x", True),
    ("my.passwd", "x", True),
    ("my.pwd", "x", True),
    ("api.key", "x", True),
    ("apikey", "x", True),
    ("my_apiKey", "x", True),
    ("private.key", "x", True),
    ("aws.secret.access.key", "x", True),
    ("aws.access.key.id", "x", False),
    ("token", "x", True),
    ("session.token", "x", True),
    ("credentials", "x", True),
    ("config.providers.vault.param.token", "x", True),
    ("config.providers.vault.param.token", "${env:T}", False),
    ("config.providers.vault.param.secret_id", "x", True),
    ("oauth.token.endpoint.uri", "https://h", False),
    ("oauth.access.token", "x", True),
    ("oauth.access.token.is.jwt", "false", False),
    ("oauth.password.grant.username", "u", False),
    ("oauth.client.assertion", "x", True),
    ("sasl.oauthbearer.assertion.claim.aud", "x", False),
]
JAAS_SECRETS = [
    ("${file:/run/secrets/kafka:jaas}", False),
    ('a.B required username="u" password="${env:P}";', False),
    (" a.B  REQUIRED\n username='u'\n password='${file:/k:p}' ; ", False),
    ("a.B required password=${env:P};", False),
    ('a.B required user="u";', False),
    ("software.amazon.msk.auth.iam.IAMLoginModule required;", False),
    ('a.B required username="id" password="${env:P}" tokenauth="true";', False),
    ('com.sun.Krb5LoginModule required useKeyTab=true keyTab="/a/b.keytab" principal="p";', False),
    ('a.B required clientId="i" clientSecret="${env:P}" scope="s";', False),
    ('a.B required password="${env:P}"; c.D optional secret="${env:Q}";', False),
    ('a.B required username="u" password="hunter2";', True),
    ("a.B required username='u' password='hunter2';", True),
    ("a.B required password=hunter2;", True),
    ('a.B required password="${env:P}x";', True),
    ('a.B required password="";', True),
    ('a.B required password="hun\\"ter2";', True),
    ('a.B required clientSecret="hunter2";', True),
    ('a.B required unsecuredLoginStringClaim_sub="hunter2";', True),
    ('a.B required user_admin="hunter2";', True),
    ('a.B required password="${env:P}"; c.D optional secret="hunter2";', True),
    ("hunter2", True),
    ("", True),
    ('a.B password="hunter2"', True),
    ('a.B required password="hunter2"', True),
    ('a.B required password="hunter2" x="${env:P}"', True),
    ('a.B required password="${env:P}"', False),
]
# fmt: on


@pytest.mark.parametrize(("key", "value", "expected"), SECRETS)
def test_keys_that_name_secrets(key: str, value: str, expected: bool) -> None:
    assert literal_secret(key, value) is expected
    assert literal_secret(f"kafka.{key}", value) is expected


@pytest.mark.parametrize(("value", "expected"), JAAS_SECRETS)
def test_secrets_in_jaas(value: str, expected: bool) -> None:
    assert literal_secret("sasl.jaas.config", value) is expected
    assert literal_secret("kafka.sasl.jaas.config", value) is expected


HIDDEN = "hUnTeR2"
# fmt: off
HOLDERS = [
    "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = 'h:9092' SSL_KEY_PASSWORD = {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = 'h:9092' SSL_KEY_PASSWORD {0} SASL_MECHANISM = 'PLAIN'",
    "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_JAAS_CONFIG = {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_JAAS_CONFIG = 'a.B required password=' {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = ['h:9092' {0}]",
    "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = ['h:9092', {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_MECHANISM = 'PLAIN', {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_MECHANISM 'PLAIN' 'ssl.key.password' {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_MECHANISM = 'PLAIN' 'ssl.key.password' {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA SASL_MECHANISM = 'PLAIN' SSL_KEY_PASSWORD = = {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA OPTIONS ('ssl.key.password' = {0}",
    "CREATE STORAGE CONNECTION c TYPE KAFKA OPTIONS ('sasl.jaas.config' = '${{env:A}}' {0})",
    "CREATE STORAGE CONNECTION c TYPE KAFKA OPTIONS (sasl.jaas.config {0}) BOOTSTRAP_SERVERS = 'h'",
    "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = 'h:9092' COMMENT {0} {0}",
    "CREATE STORAGE CONNECTION c SASL_JAAS_CONFIG = {0}",
    "CREATE STORAGE CONNECTION c {0} TYPE KAFKA",
    "CREATE STORAGE CONECTION c TYPE KAFKA SSL_KEY_PASSWORD = {0}",
    "CREATE CONNECTION c TYPE KAFKA SSL_KEY_PASSWORD = {0}",
    "ALTER STORAGE CONNECTION c SET SSL_KEY_PASSWORD = {0}",
    "CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('kafka.ssl.key.password' = {0}) CONNECTION c",
    "CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('kafka.sasl.jaas.config' = {0}) CONNECTION c",
    "CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' = 't', 'sasl.jaas.config' = {0}) CONNECTION c",
    "CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' 't' {0}) CONNECTION c",
    "CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' = 't') CONNECTION c {0}",
    "CREATE EXTERNAL TABLE k {0} USING KAFKA OPTIONS ('topics' = 't') CONNECTION c",
    "CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' = 't', 'starting_offset' = {0}) CONNECTION c",
    "CREATE EXTERNL TABLE k USING KAFKA OPTIONS ('kafka.ssl.key.password' = {0}) CONNECTION c",
    "CREATE TABLE k USING KAFKA OPTIONS ('kafka.ssl.key.password' = {0}) CONNECTION c",
]
SPELLED = ["'{}'", '"{}"', "{}", "{} {}", "`{}`", "'{}", '"{}', "r'{}'", "$${}$$", "/* {}", "'a' '{}'", "'{}', '{}'", "{}=1", "'''{}'"]
# fmt: on


@pytest.mark.parametrize("spelled", SPELLED)
@pytest.mark.parametrize("holder", HOLDERS)
def test_no_error_holds_a_secret(holder: str, spelled: str) -> None:
    text = holder.format(spelled.replace("{}", HIDDEN))
    try:
        statement = parse(text)
    except StreamqlError as error:
        found: StreamqlError | None = error
    else:
        assert statement is None or HIDDEN not in str(getattr(statement, "options", ""))
        found = explain_rejected(text) if statement is None else None
    assert HIDDEN not in f"{found} {found and found.hint}"


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20))
@example("x' SASL_MECHANISM = 'y")
@example("${env:A}")
def test_a_literal_secret_is_refused_wherever_it_stands(value: str) -> None:
    is_reference = not literal_secret("ssl.key.password", value)
    for key in ("SSL_KEY_PASSWORD", "'ssl.key.password'", "`kafka.ssl.key.password`"):
        text = f"CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = 'h:9092' {key} = {quote_string(value)}"
        if is_reference:
            assert isinstance(parse(text), CreateConnection)
            continue
        with pytest.raises(StreamqlError) as caught:
            parse(text)
        assert caught.value.code == "INVALID_PROPERTY"
        assert "${env:NAME}" in caught.value.hint
        assert "${file:/run/secrets/kafka:password}" in caught.value.hint


def test_concealed_texts_keep_their_places() -> None:
    text = "CREATE STORAGE CONNECTION c\nSSL_KEY_PASSWORD = 'hunter2' X = \"a b\" -- 'c'\n $$d e$$ 'never\nclosed"
    hidden = concealed(text)
    stars = "CREATE STORAGE CONNECTION c\nSSL_KEY_PASSWORD = '*******' X = \"* *\" -- 'c'\n *** *** '*****\n******"
    assert hidden == stars
    assert [len(line) for line in hidden.split("\n")] == [len(line) for line in text.split("\n")]
    for plain in (
        "SELECT 'hunter2'",
        "CREATE STORAGE CONNECTION c TYPE KAFKA X = 'y'",
        "SELECT 'a' AS password",
        "SELECT 'a' AS key FROM kafka",
    ):
        assert concealed(plain) == plain
