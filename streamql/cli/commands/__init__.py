"""The commands beside SQL: `streamql NAME`, one module a command, and what several of them share.

`streamql.cli.command_table` lists the commands and imports the module of the one that is typed.
"""
