"""Streams in the manner of TableStore: shards, iterators, records, and the export of 6-tuples. Pure Python, no Spark.

Terms and formats are those of TableStore Stream and of DataX's otsstreamreader. `docs/tablestore.md` compares the two.
"""

from __future__ import annotations

from importlib import import_module


def __getattr__(name: str) -> object:
    """Finds `StreamReader`, which needs Spark and is in a layer above: this package is where people who know TableStore look for it."""
    if name == "StreamReader":
        return import_module("streamql.engine.tablestore.reader").StreamReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
