"""Kafka topics as sources of streams, by the external tables that name them."""
