"""Lineage: consumptions, refreshes and tasks as events of OpenLineage."""
