"""Storage connections: how Kafka's brokers are reached. CREATE, DROP, SHOW and DESCRIBE, in ClickZetta's spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import name_part, string_value
from streamql.features.kafka.language.options import (
    Option,
    check_secret,
    given_twice,
    invalid,
    read_list,
    read_option,
    read_string,
)
from streamql.features.kafka.language.statements import (
    CreateConnection,
    DescribeConnection,
    DropConnection,
    ShowConnections,
)
from streamql.misspelt import did_you_mean, suggestion, taken_for

CREATE_CONNECTION_GRAMMAR = (
    "CREATE [OR REPLACE] STORAGE CONNECTION [IF NOT EXISTS] name TYPE KAFKA BOOTSTRAP_SERVERS = ['host:port', …] "
    "[SECURITY_PROTOCOL = 'SASL_SSL'] [KEY = 'value' …] [COMMENT '…']"
)
DROP_CONNECTION_GRAMMAR = "DROP [STORAGE] CONNECTION [IF EXISTS] name"
SHOW_CONNECTIONS_GRAMMAR = "SHOW [STORAGE] CONNECTIONS [LIKE 'pattern']"
DESCRIBE_CONNECTION_GRAMMAR = "DESCRIBE STORAGE CONNECTION name"

_TYPE = "KAFKA"
_SERVERS = "bootstrap.servers"
_SERVERS_HINT = "write BOOTSTRAP_SERVERS = ['host:9092']"
_SERVER = re.compile(r"(?:\w+://)?(?:\[[0-9A-Fa-f:.%]+\]|[\w.-]+):[0-9]{1,5}", re.ASCII)
_PREFIX = "kafka."
_LISTS = (("WITH", "OPTIONS"), ("WITH", "PROPERTIES"), ("OPTIONS",), ("PROPERTIES",), ("WITH",))

# fmt: off
_KNOWN = (
    _SERVERS, "client.dns.lookup", "client.id", "config.providers", "security.protocol", "security.providers",
    "sasl.client.callback.handler.class", "sasl.jaas.config", "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.service.name", "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor", "sasl.login.callback.handler.class", "sasl.login.class",
    "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms", "sasl.mechanism",
    "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode", "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url", "ssl.cipher.suites", "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm", "ssl.engine.factory.class", "ssl.key.password",
    "ssl.keymanager.algorithm", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.keystore.type", "ssl.protocol", "ssl.provider", "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm", "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password",
    "ssl.truststore.type",
)
"""The settings of Kafka's client (3.9) for reaching brokers: what a misspelt key may have meant. Others are accepted."""

_SHOWN = frozenset((
    "CREATE", "OR", "REPLACE", "STORAGE", "CONNECTION", "IF", "NOT", "EXISTS", "TYPE", "KAFKA", "WITH", "OPTIONS",
    "PROPERTIES", "COMMENT", "ON", "AS", "SET", "(", ")", "[", "]", ",", "=", ".", ";",
    *(key.replace(".", "_").upper() for key in _KNOWN),
))
# fmt: on


def parse_create_connection(cursor: Cursor) -> CreateConnection:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY. No error quotes a
    value."""
    cursor.grammar = CREATE_CONNECTION_GRAMMAR
    cursor.shown = _SHOWN
    cursor.expect("CREATE")
    or_replace = cursor.take("OR", "REPLACE")
    cursor.expect("STORAGE", "CONNECTION")
    if_not_exists = cursor.if_not_exists(or_replace, "connection")
    name, name_span = cursor.single_name("the name of the connection")
    _read_type(cursor)
    clauses = _Clauses(cursor)
    clauses.read()
    return CreateConnection(
        name, _TYPE, clauses.options, or_replace, if_not_exists, clauses.comment, name_span=name_span
    )


def _read_type(cursor: Cursor) -> None:
    cursor.expect("TYPE", hint="write TYPE KAFKA after the name")
    cursor.take("=")
    token = cursor.token
    word = string_value(token) if cursor.at_string() else name_part(token)
    if word is None:
        raise cursor.expected(_TYPE, "write TYPE KAFKA")
    if word.upper() != _TYPE:
        hint = suggestion(word, (_TYPE,)) or "write TYPE KAFKA; Spark reads files of other storage by their path"
        what = f"TYPE {word.upper()}" if re.fullmatch("[A-Za-z0-9_]{1,20}", word) else "this TYPE"
        raise cursor.refused(what, "streamql knows storage connections of TYPE KAFKA", hint)
    cursor.advance()


class _Clauses:
    """What stands after the type: keys with values, alone or in lists, and a comment. Each comes once, in any order."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.comment: str | None = None
        self._options: dict[str, str] = {}

    @property
    def options(self) -> Mapping[str, str]:
        """By Kafka's names."""
        return self._options

    def read(self) -> None:
        """Reads all up to the end of the statement. Raises if the brokers are missing."""
        cursor = self.cursor
        while not cursor.at_end() and not cursor.at(";"):
            self._clause()
            if cursor.take(",") and (cursor.at_end() or cursor.at(";")):
                raise cursor.expected("an option: KEY = 'value'")
        if _SERVERS not in self._options:
            message = "a connection to Kafka names its brokers, this one names none"
            raise invalid(cursor, message, _SERVERS_HINT, cursor.token)

    def _clause(self) -> None:
        cursor = self.cursor
        if cursor.at("COMMENT"):
            token = cursor.advance()
            if self.comment is not None:
                raise cursor.error("COMMENT is given twice", token=token)
            cursor.take("=")
            self.comment = read_string(cursor, "the comment")
        elif any(cursor.take(*keywords, "(") for keywords in _LISTS):
            for option in read_list(cursor):
                self._set(option)
        elif cursor.at_name() or cursor.at_string():
            self._set(read_option(cursor))
        else:
            raise cursor.expected("an option: KEY = 'value'")

    def _set(self, option: Option) -> None:
        cursor, key = self.cursor, _kafka_name(option.key)
        check_secret(cursor, key, option)
        meant = taken_for(key, _KNOWN)
        if meant is not None and meant != key:
            hint = did_you_mean(meant.replace(".", "_").upper() if option.is_bare else repr(meant))
            raise invalid(cursor, f"{option.key} is not a setting of Kafka's client", hint, option.start)
        if key in self._options:
            raise given_twice(cursor, option, key)
        self._options[key] = self._servers(option) if key == _SERVERS else option.value

    def _servers(self, option: Option) -> str:
        servers = [server.strip() for server in option.value.split(",")]
        for server in servers:
            if "${" not in server and _SERVER.fullmatch(server) is None:
                message = "bootstrap.servers takes brokers as host:port, with commas between"
                raise invalid(self.cursor, message, _SERVERS_HINT, option.value_start)
        return ",".join(servers)


def _kafka_name(key: str) -> str:
    """Kafka's own name of a key: SASL_MECHANISM and 'kafka.sasl.mechanism' are sasl.mechanism."""
    if "." not in key:
        return key.lower().replace("_", ".")
    return key[len(_PREFIX) :] if key.lower().startswith(_PREFIX) else key


def parse_drop_connection(cursor: Cursor) -> DropConnection:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = DROP_CONNECTION_GRAMMAR
    cursor.expect("DROP")
    cursor.take("STORAGE")
    cursor.expect("CONNECTION")
    if_exists = cursor.take("IF", "EXISTS")
    name, name_span = cursor.single_name("the name of the connection")
    return DropConnection(name, if_exists, name_span)


def parse_show_connections(cursor: Cursor) -> ShowConnections:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = SHOW_CONNECTIONS_GRAMMAR
    cursor.expect("SHOW")
    cursor.take("STORAGE")
    cursor.expect("CONNECTIONS")
    if cursor.take("LIKE"):
        return ShowConnections(cursor.string("the pattern"))
    if not cursor.at_end() and not cursor.at(";"):
        raise cursor.expected("LIKE")
    return ShowConnections()


def parse_describe_connection(cursor: Cursor) -> DescribeConnection:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = DESCRIBE_CONNECTION_GRAMMAR
    cursor.advance()
    cursor.expect("STORAGE", "CONNECTION")
    return DescribeConnection(*cursor.single_name("the name of the connection"))
