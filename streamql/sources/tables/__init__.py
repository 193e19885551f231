"""Delta tables as sources of streams: their history and their rows."""
