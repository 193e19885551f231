"""Streams in the manner of TableStore: shards, iterators, records, and the export of 6-tuples. Pure Python, no Spark.

Terms and formats are those of TableStore Stream and of DataX's otsstreamreader. `docs/tablestore.md` compares the two.
"""
