"""The metrics job: Spark Structured Streaming makes figures and history of the metrics topic."""
