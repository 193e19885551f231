"""Statements: read from the command line, files and pipes; run in a session, here or on a server; their results printed."""
