"""The connection between the session extension in the JVM and Python."""

from streamql.bridge.errors import as_streamql_error, silence
from streamql.bridge.handler import install

__all__ = ["as_streamql_error", "install", "silence"]
