"""The `streamql` command: SQL from the command line, files and pipes; rows to stdout, all else to stderr."""
