"""The TPC-H scoreboard of dynamic tables."""
