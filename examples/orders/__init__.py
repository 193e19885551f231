"""Order events from a Kafka topic: a stream brings them into a table, whose stream feeds a summary. Each step is proved."""

from pathlib import Path

DIRECTORY = Path(__file__).parent
"""Where the scripts are."""

TOPIC = "streamql-orders"
