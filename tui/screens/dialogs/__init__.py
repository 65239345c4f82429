"""Dialogs over a view: each asks one thing."""
