"""The query of a dynamic table as a source: analysed, its changes followed by a refresh; and the table as a source of streams."""
