"""Idempotent producers of a log."""
