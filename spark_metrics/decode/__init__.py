"""Decodes records of the metrics topic: head, body, and the ranges that both must keep."""
