"""Reads a store: the tables of now, history, and a past state."""
