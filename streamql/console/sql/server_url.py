"""URLs of Spark Connect servers, without Spark's client: it takes a second to import."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from streamql.errors import StreamqlError

CONNECT_SECONDS_MAX = 5.0
PORT_DEFAULT = 15002


def server_of(url: str) -> str:
    """Returns the host and port of a URL, for display."""
    parts = urlsplit(url)
    return f"{parts.hostname or '?'}:{_port(url)}"


def _port(url: str) -> int:
    try:
        return urlsplit(url).port or PORT_DEFAULT
    except ValueError:
        said = f"{_without_parameters(url)} has no valid port"
        raise StreamqlError("INVALID_ARGUMENT", said, hint="--connect sc://host:15002, parameters behind /;") from None


def _without_parameters(url: str) -> str:
    """Returns the URL for display: a parameter may be a token."""
    return url.partition(";")[0]


def reach(url: str) -> None:
    """Fails at once if no server listens: the client itself would try for minutes. Raises INVALID_ARGUMENT."""
    parts = urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise StreamqlError(
            "INVALID_ARGUMENT", f"{_without_parameters(url)} is no Spark Connect URL", hint="--connect sc://host:15002"
        )
    try:
        socket.create_connection((parts.hostname, _port(url)), CONNECT_SECONDS_MAX).close()
    except OSError as e:
        why = e.strerror or str(e)
        hint = "streamql server --connect starts one"
        raise StreamqlError("INVALID_ARGUMENT", f"no server answers at {server_of(url)}: {why}", hint=hint) from None
