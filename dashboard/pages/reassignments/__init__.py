"""Pages of reassignments: planned, checked, running and ended."""
