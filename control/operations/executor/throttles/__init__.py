"""Throttles of replication: the rate, setting and removing it, adapting it."""
