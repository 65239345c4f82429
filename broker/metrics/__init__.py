"""Samples of this broker on their way into the metrics topic."""
