"""TableStore streams of Delta tables: records, shards and exports, computed by Spark. Formats and rules are in `formats`."""
