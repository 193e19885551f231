"""Streams on views: random views over random histories of tables, and each promise by itself."""
