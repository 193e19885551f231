"""Replay: what a consumption took, read again; and its statement, run again into a shadow of its target."""
