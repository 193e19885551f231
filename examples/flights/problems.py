"""What ends the demo early."""

from __future__ import annotations


class DemoError(Exception):
    """The demo cannot run here; the message says what to do."""


class ProofFailed(Exception):
    """A target is not what its source says it should be. The demo ends with exit code 1."""
