"""From the metrics topic to aggregates, by Spark Structured Streaming."""
