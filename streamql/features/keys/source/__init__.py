"""Tables whose rows are recognized by their key, as sources of streams."""
