"""External tables on Kafka topics, and streams on them."""
