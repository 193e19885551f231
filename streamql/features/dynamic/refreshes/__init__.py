"""Refreshes of dynamic tables: when they are due, in which order they run, what they write, and their status and history."""
