"""Features: what they register, and that a new one is one folder and one line."""
