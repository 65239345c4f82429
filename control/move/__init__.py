"""Reassignments as values: command, events, state, throttle, results. Pure."""
