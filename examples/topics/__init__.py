"""What the examples with a Kafka topic have in common: the command, the producer, a consumer that is killed, and how a story is told."""

from pathlib import Path

DIRECTORY = Path(__file__).parent
"""Where the scripts are that each of them runs at its end."""
