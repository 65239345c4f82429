"""Durable files, delayed deletes, and the health of the disk."""
