"""Tasks: statements that run by a schedule, behind other tasks, or when a stream has data."""
