"""Programs that show what streamql is for. Run them from the repository's root: `python -m examples.flights`."""
