"""AUTO CDC INTO: keeps a copy of a table, or the history of its rows, from a stream of changes."""
