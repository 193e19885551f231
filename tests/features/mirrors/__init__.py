"""A small feature: a mirror of a Delta table t has the name mirror_of_t, and streams can be made on it."""
