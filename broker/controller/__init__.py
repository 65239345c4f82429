"""Decisions of the active controller (`decide`), and the way to it."""
