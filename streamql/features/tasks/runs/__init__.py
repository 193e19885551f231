"""Runs of tasks: which are due, who runs them, and how they end."""
