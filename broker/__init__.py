"""A Kafka-protocol broker: sans-IO cores, one asyncio shell per process."""
