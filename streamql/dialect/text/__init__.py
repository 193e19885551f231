"""The text of any statement: its tokens, its shape, splices into it, scripts split into statements, and misspelt words."""
