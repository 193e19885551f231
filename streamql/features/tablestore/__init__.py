"""TableStore streams of Delta tables: records, shards and exports, computed by Spark. `formats` and `jobs` do without Spark."""
