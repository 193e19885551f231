"""Completion at the prompt, of statements (`statements`, `scope`, `words`, `vocabulary`) and of the shell's commands (`shell_commands`).

All of it is pure: a function of the text around the cursor and of a snapshot of the catalog.
"""
