"""Changes of a database as Debezium sends them: a copy and a history, although events come late and twice."""

from pathlib import Path

DIRECTORY = Path(__file__).parent
"""Where the scripts are."""

TOPIC = "streamql-debezium"
