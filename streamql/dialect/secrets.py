"""Secrets in the options of statements: only references to them are accepted. Pure.

A reference has the syntax of Kafka's config providers (KIP-297): `${provider:[path:]key}`. Kafka's client resolves it
when it connects, so that no statement, plan, log or catalog entry holds the secret itself.
"""

from __future__ import annotations

import re
from itertools import pairwise

from streamql.dialect.text.tokens import TokenType, scan

REFERENCE_HINT = "write a reference to the secret: ${env:NAME} or ${file:/run/secrets/kafka:password}"

_REFERENCE = re.compile(r"\$\{[A-Za-z_][\w.-]*:[^{}]+\}", re.ASCII)
_JAAS = "sasl.jaas.config"

# Words of a key; camelCase has several: clientSecret.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_SECRET_WORD = re.compile(r"pass(?:word|wd|phrase)|pwd\Z|secret|credential|apikey|privatekey|accesskey|tokens?[0-9]*\Z")
_SECRET_PAIRS = frozenset(
    (("api", "key"), ("private", "key"), ("access", "key"), ("keystore", "key"), ("ssl", "key"), ("user", "info"))
)
# A key that ends so says where a secret is, or of what type: ssl.keystore.password.file, token.endpoint.url.
# fmt: off
_HARMLESS_ENDS = frozenset((
    "url", "uri", "endpoint", "location", "path", "file", "source", "type", "class", "handler", "provider", "algorithm",
    "mechanism", "id", "name", "username", "alias", "enabled", "jwt", "ms", "seconds",
))
# fmt: on

# One entry of a JAAS text: Class flag name="value" … ;
_OPTION = r"""\s+([\w.-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"'=]+)"""
_ENTRY = re.compile(
    rf"\s*[\w.$-]+\s+(?:required|requisite|sufficient|optional)((?:{_OPTION})*)\s*;\s*",
    re.IGNORECASE | re.DOTALL,
)
_ANY_OPTION = re.compile(r"""(?<![\w.-])([\w.-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s;"',]*)""")
_JAAS_SECRET_STARTS = ("unsecuredloginstringclaim", "user_")

_MENTIONS_KAFKA = re.compile(r"connection|kafka", re.IGNORECASE)
_MENTIONS_SECRET = re.compile(
    r"ssl|sasl|jaas|pass(?:w|phrase)|pwd|secret|credential|token|(?:api|private|access).?key", re.IGNORECASE
)


def literal_secret(key: str, value: str) -> bool:
    """Returns whether an option holds a secret in plain text: its key names a secret, and the value is not one reference and nothing else.

    Of `sasl.jaas.config`, each option that names a secret counts. A JAAS text that cannot be read is a secret unless it
    holds references alone where secrets are.
    """
    if key.lower().endswith(_JAAS):
        return not _is_reference(value) and _holds_secret(value)
    return names_secret(key) and not _is_reference(value)


def names_secret(key: str) -> bool:
    """Returns whether a key of Kafka's, or an option of a JAAS entry, stands for a secret."""
    words = [word.lower() for word in _WORD.findall(key)]
    if words[-1:] == ["id"] and _SECRET_WORD.search("".join(words[-2:-1])):
        return True  # Vault's secret_id
    if not words or words[-1] in _HARMLESS_ENDS:
        return False
    return (
        words[-1] == "assertion"
        or any(_SECRET_WORD.search(word) for word in words)
        or any(pair in _SECRET_PAIRS for pair in pairwise(words))
    )


def concealed(text: str) -> str:
    """Returns the text of a statement with `*` for each letter of its string literals, if it may hold a secret of Kafka's.

    For excerpts of statements in errors and logs. Lines and columns stay as they are.
    """
    if not _MENTIONS_KAFKA.search(text) or not _MENTIONS_SECRET.search(text):
        return text
    pieces, done = [], 0
    for token in scan(text):
        if token.type in (TokenType.STRING, TokenType.DOUBLE_QUOTED, TokenType.DOLLAR_QUOTED, TokenType.UNTERMINATED):
            pieces += [text[done : token.start], re.sub(r"[^\s'\"`]", "*", token.text)]
            done = token.end
    return "".join((*pieces, text[done:]))


def _is_reference(value: str) -> bool:
    return _REFERENCE.fullmatch(value) is not None


def _holds_secret(jaas: str) -> bool:
    position = 0
    while (entry := _ENTRY.match(jaas, position)) is not None:
        options = re.finditer(_OPTION, entry.group(1), re.DOTALL)
        if any(_is_secret_option(option.group(1), option.group(2)) for option in options):
            return True
        position = entry.end()
    if position and position == len(jaas):
        return False
    found = [(option.group(1), option.group(2)) for option in _ANY_OPTION.finditer(jaas)]
    return _REFERENCE.search(jaas) is None or any(_is_secret_option(name, value) for name, value in found)


def _is_secret_option(name: str, value: str) -> bool:
    is_secret = names_secret(name) or name.lower().startswith(_JAAS_SECRET_STARTS)
    return is_secret and not _is_reference(value[1:-1] if value[:1] in "\"'" else value)
