"""Which streamql a task reaches: arguments of the operator or the sensor, and a connection of Airflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseHook

from streamql.errors import StreamqlError
from streamql.integrations.client import COMMAND, Streamql

PLACE = ("data", "connect", "conf", "database", "lake", "command")
"""The arguments, and the fields of a connection's extra, that say which streamql is meant."""
PORT_DEFAULT = 15002


def reached(conn_id: str | None, given: Mapping[str, Any]) -> Streamql:
    """Returns the streamql of a connection and of arguments, which go first. Raises INVALID_ARGUMENT."""
    return streamql_of({} if conn_id is None else _of_connection(BaseHook.get_connection(conn_id)), given)


async def reached_async(conn_id: str | None, given: Mapping[str, Any]) -> Streamql:
    """Returns the same, without blocking the event loop."""
    return streamql_of({} if conn_id is None else _of_connection(await BaseHook.aget_connection(conn_id)), given)


def streamql_of(connection: Mapping[str, Any], given: Mapping[str, Any]) -> Streamql:
    """Returns the streamql that the fields of a connection and arguments name. Raises INVALID_ARGUMENT for fields of other types."""
    found = {**connection, **{key: value for key, value in given.items() if value}}
    conf, command = found.get("conf") or {}, found.get("command") or COMMAND
    if not isinstance(conf, Mapping):
        raise StreamqlError("INVALID_ARGUMENT", "conf is not a mapping", hint='{"conf": {"spark.driver.memory": "4g"}}')
    if not isinstance(command, Sequence) or isinstance(command, str):
        raise StreamqlError(
            "INVALID_ARGUMENT", "command is not a list", hint='{"command": ["/opt/streamql/bin/streamql"]}'
        )
    return Streamql(
        data=str(found.get("data") or ""),
        connect=str(found.get("connect") or ""),
        conf={str(key): str(value) for key, value in conf.items()},
        database=str(found.get("database") or ""),
        lake=str(found.get("lake") or "lake"),
        command=tuple(map(str, command)),
    )


def _of_connection(connection: Any) -> dict[str, Any]:
    """Returns the fields of a connection: of its extra, and the URL of its host, port and password (a token)."""
    extra = connection.extra_dejson
    found = {key: extra[key] for key in PLACE if extra.get(key)}
    if connection.host and "data" not in found and "connect" not in found:
        token = f"/;use_ssl=true;token={quote(connection.password, safe='')}" if connection.password else ""
        found["connect"] = f"sc://{connection.host}:{connection.port or PORT_DEFAULT}{token}"
    if connection.schema:
        found.setdefault("database", connection.schema)
    return found
