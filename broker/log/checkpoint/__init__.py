"""The small text files beside the segments, in Kafka's formats."""
