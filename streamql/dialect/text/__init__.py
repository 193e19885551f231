"""The text of any statement: its tokens, its shape, splices into it, and scripts split into statements."""
