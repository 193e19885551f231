"""The scheduler: looks what is due, and runs it. Features say what that is."""
