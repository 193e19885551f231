"""Dynamic tables as sources: the query of a dynamic table, whose changes its refreshes consume, and the table as a source of streams."""
