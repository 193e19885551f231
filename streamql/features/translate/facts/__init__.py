"""What is known of a script: its streams, views, tables and the types of its columns."""
