"""Refreshes: when they are due, in which order, what they write, and how they went."""
