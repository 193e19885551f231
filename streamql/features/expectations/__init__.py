"""Expectations: conditions on the rows of streams, and quarantine tables for rows that violate them."""
