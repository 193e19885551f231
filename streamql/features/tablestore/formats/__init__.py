"""The format of TableStore's records: values, keys, hashes, sequence numbers. Pure Python, no Spark.

Terms and formats are those of TableStore Stream and of DataX's otsstreamreader. `docs/tablestore.md` compares the two.
"""
