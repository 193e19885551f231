"""Exports as TableStore and DataX do them: the job, its shards and windows, status rows, writers. Plans and data, without Spark."""
