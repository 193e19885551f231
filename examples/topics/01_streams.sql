-- Where each stream stands: a version of a table, or the next offset of each partition of a topic.

SHOW STREAMS;
