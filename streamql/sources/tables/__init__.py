"""Delta tables as sources of streams: their history, their rows, and their TableStore streams."""
