"""Runs what the pages of docs/ and the README show: SQL with its results, Python, and commands with what they print."""
