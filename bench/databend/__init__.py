"""Databend as a peer: its engine in a process of its own, and the benchmarks that run it."""
