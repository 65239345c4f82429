"""Reassignments before they run: plans, pre-flight checks, previews, rollbacks."""
