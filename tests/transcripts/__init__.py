"""Runs the transcripts of sql/: statements with the results they must have. `sql/README.md` describes the format."""
