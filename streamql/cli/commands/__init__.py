"""The commands beside SQL: `streamql NAME`, one module a command, and what several of them share.

`streamql.console.commands` lists the commands and imports the module of the one that is typed.
"""
