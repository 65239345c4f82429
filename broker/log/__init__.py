"""Segments on disk in Kafka's own format: append, read, roll, recover, retain."""
