"""What the examples with a Kafka topic have in common: the command, the producer, a consumer that is killed, and how a story is told."""
