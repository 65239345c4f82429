"""Plans and their reassignments."""
