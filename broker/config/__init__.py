"""Configuration of one node, from Kafka-style properties."""
