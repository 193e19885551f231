"""Between the JVM's session extension and Python."""

from streamql.bridge.handler import install

__all__ = ["install"]
