"""Whether events are sent: the configuration is that of OpenLineage's Python client."""

from __future__ import annotations

import logging
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

log = logging.getLogger("streamql")

NAMESPACE = "streamql"
"""The namespace of jobs and streams unless OPENLINEAGE_NAMESPACE names another one."""


def is_on() -> bool:
    """Returns whether the client has a transport: by OPENLINEAGE_URL, by OPENLINEAGE__TRANSPORT…, or by a configuration file. Warns once
    if the client is not installed."""
    return _is_wanted() and _is_installed()


def namespace() -> str:
    """Returns the namespace of jobs and streams."""
    return os.environ.get("OPENLINEAGE_NAMESPACE") or NAMESPACE


def _is_wanted() -> bool:
    """Looks where the client looks (https://openlineage.io/docs/client/python/configuration). Without any of these, it would print the
    events to the console."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if os.environ.get("OPENLINEAGE_URL") or any(name.startswith("OPENLINEAGE__TRANSPORT") for name in os.environ):
        return True
    named = os.environ.get("OPENLINEAGE_CONFIG")
    files = [
        *([Path(named)] if named else []),
        Path("openlineage.yml"),
        Path.home() / ".openlineage" / "openlineage.yml",
    ]
    return any(path.is_file() for path in files)


@cache
def _is_installed() -> bool:
    if find_spec("openlineage") is not None and find_spec("openlineage.client") is not None:
        return True
    log.warning(
        "no lineage is sent, because OpenLineage's client is not installed: pip install 'streamql[openlineage]'"
    )
    return False
